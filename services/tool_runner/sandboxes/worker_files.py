"""The files in /opt/loci of a sandbox: the worker, which is started as `python3 -I /opt/loci/worker`."""

from pathlib import Path

_PACKAGE = Path(__file__).with_name("worker")


def worker_files() -> dict[str, bytes]:
    """Returns content by path below /opt/loci."""
    return {f"worker/{file.name}": file.read_bytes() for file in sorted(_PACKAGE.glob("*.py"))}
