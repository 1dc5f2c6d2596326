"""Packages that tools find without asking for them: Pydantic, as in the image, out of the service's own environment.

Only for a Python of the service's own version: compiled packages are of one.
"""

import importlib.metadata
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from services.tool_runner.sandboxes.bubblewrap.node_runtime import everybody_reads

_ROOT = "pydantic"
_COPY = "loci-packages-"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Packages:
    """`paths`: real paths of the host, by their names in the sandbox's folder. `copied`: a folder that is ours."""

    paths: tuple[tuple[str, str], ...] = ()
    copied: str = ""

    def discard(self) -> None:
        """Removes the copies that were made, if any were."""
        if self.copied:
            shutil.rmtree(self.copied, ignore_errors=True)


def find_packages() -> Packages:
    """Returns them; none where the service's environment has none. Blocking."""
    found = {path.name: str(path.resolve()) for path in _top_levels()}
    if all(everybody_reads(path) for path in found.values()):
        return Packages(tuple(found.items()))
    return _copy(found)


def _top_levels() -> Iterator[Path]:
    """Yields the modules and packages of Pydantic and of what it needs."""
    seen: set[str] = set()
    names = [_ROOT]
    for name in names:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        tops = {file.parts[0] for file in distribution.files or ()}
        for top in sorted(tops - seen):
            if top.endswith(".py") or (not top.endswith(".dist-info") and top.isidentifier()):
                seen.add(top)
                yield Path(str(distribution.locate_file(top)))
        for needed in distribution.requires or ():
            match = None if "extra ==" in needed else _NAME.match(needed)
            if match and match[0] not in names:
                names.append(match[0])


def _copy(found: dict[str, str]) -> Packages:
    """Copies them to where everybody may read them: an environment may be below a closed folder, as root's home is."""
    for left in Path(tempfile.gettempdir()).glob(_COPY + "*"):
        pid = left.name.removeprefix(_COPY).partition("-")[0]
        if left.stat().st_uid == os.geteuid() and not Path("/proc", pid).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_COPY}{os.getpid()}-"))
    os.chmod(folder, 0o755)
    for name, path in found.items():
        if os.path.isdir(path):
            shutil.copytree(path, folder / name)
        else:
            shutil.copy2(path, folder / name)
    for path, _, names in os.walk(folder):
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)
    paths = tuple((name, str(folder / name)) for name in found)
    packages = Packages(paths, str(folder))
    if all(everybody_reads(path) for _, path in paths):
        return packages
    packages.discard()
    return Packages()
