"""The parcel for a vendor's sandbox: worker and Node's entry as one archive, a layer, and how to start."""

import functools
import io
import json
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from services.tool_runner.core.job import Language, SandboxUnavailable
from services.tool_runner.sandboxes.ports import Shape
from services.tool_runner.sandboxes.worker_files import worker_files

HOME = "/opt/loci"
LAYER = f"{HOME}/layer"
_BOOT = Path(__file__).with_name("boot.py")
_NODE = _BOOT.parent.with_name("node")
_RUN_BY_NODE = frozenset({".js", ".cjs", ".mjs", ".json", ".wasm"})
_OWN_PROCESSES = 2  # the keeper, and one to spare
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",
}


@functools.lru_cache
def worker_archive(language: Language) -> bytes:
    """Returns the tar.gz to be unpacked in /opt/loci; blocking. Raises SandboxUnavailable."""
    files = worker_files() | (dict(_node_files()) if language is Language.NODE else {})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), 0o644
            archive.addfile(about, io.BytesIO(content))
    return packed.getvalue()


def command(shape: Shape, archives: Sequence[Mapping[str, Any]], *, text: bool) -> list[str]:
    """Returns the argv that is started there; `archives` as `boot` takes them."""
    options = ["--language", shape.language.value]
    if shape.language is Language.NODE:
        options += ["--memory", str(shape.memory)]
    job = {
        "archives": list(archives),
        "argv": ["-I", f"{HOME}/worker", *options],
        "environment": _ENVIRONMENT,
        "processes": shape.processes + _OWN_PROCESSES,
        "text": text,
    }
    return ["python3", "-I", "-c", _BOOT.read_text(), json.dumps(job)]


def _node_files() -> Iterator[tuple[str, bytes]]:
    if not (_NODE / "node_modules").is_dir():
        raise SandboxUnavailable(f"the compiler of TypeScript is not installed: run 'npm ci --prefix {_NODE}'")
    for path in sorted(_NODE.rglob("*")):
        if path.suffix in _RUN_BY_NODE and path.is_file():
            yield f"node/{path.relative_to(_NODE)}", path.read_bytes()
