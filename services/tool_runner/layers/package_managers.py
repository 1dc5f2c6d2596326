"""pip and npm as files, for sandboxes that have none: those of this machine, where they are whole."""

import importlib.util
import io
import shutil
import tarfile
import zipfile
from functools import lru_cache
from pathlib import Path

from services.tool_runner.core.job import File

PIP, NPM = "pip.zip", "npm.tgz"


@lru_cache(maxsize=1)
def pip_file() -> File | None:
    """Returns the pip that this process could import, as an archive that Python runs; None where there is none."""
    spec = importlib.util.find_spec("pip")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).parent
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))
    return File(PIP, content.getvalue())


@lru_cache(maxsize=1)
def npm_file() -> File | None:
    """Returns npm of this machine as a tar with the folder `npm`; None where it is not there as a whole."""
    program = shutil.which("npm")
    package = Path(program).resolve().parents[1] if program else None
    if package is None or not (package / "node_modules").is_dir() or not (package / "bin/npm-cli.js").is_file():
        return None
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1, dereference=True) as archive:
        archive.add(package, "npm")
    return File(NPM, content.getvalue())
