"""Runs first in a vendor's sandbox, as `python3 -I -c <this text> <JSON>`: unpacks what was sent, becomes the worker.

The JSON has `archives`, each with `place` (a folder) and either `file` (a path) or `size` (of what comes on stdin
before anything else); `argv` and `environment` of the worker; `processes`, the most there may be of its user's; and
`text`: where only text comes through, each piece that the worker writes is a line of base64. Python 3.11, no more.

Where it is root, the worker and its tools are not, and what it unpacked is not theirs to change.
"""

import base64
import contextlib
import ctypes
import json
import os
import resource
import sys
import tarfile
from typing import Any

_NOBODY = 65534
_CHUNK = 48 * 1024  # of three bytes each: lines without padding
_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_LIBC = ctypes.CDLL(None)


class Part:
    """The next `size` bytes of a descriptor, as a file to be read."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._descriptor = descriptor
        self._left = size

    def read(self, size: int = 1 << 20) -> bytes:
        """Returns up to `size` bytes, fewer only at the end."""
        size_wanted, read = min(size, self._left), b""
        while len(read) < size_wanted:
            piece = os.read(self._descriptor, size_wanted - len(read))
            if not piece:
                sys.exit("the runner was gone before all its files had come")
            read += piece
        self._left -= len(read)
        return read


def unpack(archive: dict[str, Any]) -> None:
    """Unpacks a tar, compressed or not, to its place."""
    os.makedirs(archive["place"], exist_ok=True)
    with contextlib.ExitStack() as stack:
        part: Any = Part(0, archive["size"]) if "size" in archive else stack.enter_context(open(archive["file"], "rb"))
        with tarfile.open(fileobj=part, mode="r|*") as tar:
            # Older ones of 3.11 know no filters; the archives are the runner's own.
            tar.extractall(archive["place"], **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
        while part.read():
            pass


def become(job: dict[str, Any]) -> None:
    """Becomes the worker, without privileges."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (job["processes"], job["processes"]))
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    os.execve(sys.executable, [sys.executable, *job["argv"]], job["environment"])


def as_text(source: int) -> None:
    """Writes what comes there as lines of base64."""
    while piece := os.read(source, _CHUNK):
        line = base64.b64encode(piece) + b"\n"
        while line:
            line = line[os.write(1, line) :]


def main() -> None:
    """Becomes the worker: never returns."""
    job = json.loads(sys.argv[1])
    os.umask(0o022)
    for archive in job["archives"]:
        unpack(archive)
    for folder in ("/work", "/inputs"):
        os.makedirs(folder, exist_ok=True)
        with contextlib.suppress(PermissionError):  # where it is not root, the template has made them
            os.chmod(folder, 0o777)
    os.chdir("/work")
    if not job["text"]:
        become(job)
    source, target = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(target, 1)
        become(job)
    # The tool may not look into this one either: what it writes is taken for the worker's.
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.close(target)
    os.close(0)
    as_text(source)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


if __name__ == "__main__":
    main()
