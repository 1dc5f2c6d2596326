"""The folders of a call: what it is given in /inputs, what it leaves in /work, and what the next one must not see."""

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

INPUTS, WORK = "/inputs", "/work"
_CLEARED = (INPUTS, "/tmp", "/dev/shm")
_NAME_CHARS, _MOST_SEEN, _DEEPEST = 255, 10_000, 32


class Inputs:
    """Writes the files of a call, one after another: `begin`, `add` for each chunk, `finish` after the last."""

    def __init__(self, folder: str = INPUTS) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None

    def begin(self, name: str) -> None:
        """Raises OSError; ValueError for a name that would leave the folder."""
        self._end()
        if not _is_name(name):
            raise ValueError(f"not a name of a file: {name!r}")
        path = os.path.join(self._folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._file = open(path, "xb")  # noqa: SIM115 - it stays open between frames

    def add(self, chunk: bytes) -> None:
        """Raises OSError where there is no room."""
        if self._file:
            self._file.write(chunk)

    def finish(self) -> None:
        """Makes them read-only from here on."""
        self._end()
        for folder, _, names in os.walk(self._folder):
            for path in (*(os.path.join(folder, name) for name in names), folder):
                with contextlib.suppress(OSError):  # a folder that was there before is not the keeper's
                    os.chmod(path, 0o555 if path == folder else 0o444)

    def _end(self) -> None:
        file, self._file = self._file, None
        if file:
            file.close()


def _is_name(name: str) -> bool:
    """Returns a relative path of 1 to 255 characters, without `..`, control characters and backslashes."""
    if not 0 < len(name) <= _NAME_CHARS or not name.isprintable() or "\\" in name:
        return False
    return not {"", ".", ".."} & set(name.split("/"))


class ProducedFiles:
    """The files left in a folder. Only when no process of the tool is alive: nothing changes under this then."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self.dropped = 0
        self._files_left, self._bytes_left = most, most_bytes
        self._seen = 0

    def walk(self, folder: str, previous: dict[str, tuple[int, ...]]) -> Iterator[tuple[str, BinaryIO]]:
        """Yields (name, open file) of those that are new or other than in `known`, which is brought up to date."""
        with contextlib.suppress(OSError):
            top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                yield from self._below(top, "", previous, _DEEPEST)
            finally:
                os.close(top)

    def _below(
        self, folder: int, prefix: str, previous: dict[str, tuple[int, ...]], depth: int
    ) -> Iterator[tuple[str, BinaryIO]]:
        for entry in sorted(os.listdir(folder)):
            if entry.startswith(".") or entry == "__pycache__":
                continue
            self._seen += 1
            name = prefix + entry
            about = os.lstat(entry, dir_fd=folder) if self._seen <= _MOST_SEEN and _is_name(name) else None
            if about is None or not (stat.S_ISREG(about.st_mode) or (stat.S_ISDIR(about.st_mode) and depth)):
                self.dropped += 1
            elif stat.S_ISREG(about.st_mode):
                yield from self._file(folder, entry, name, about, previous)
            elif (below := _open(folder, entry, os.O_DIRECTORY)) is None:
                self.dropped += 1
            else:
                try:
                    yield from self._below(below, name + "/", previous, depth - 1)
                finally:
                    os.close(below)

    def _file(
        self, folder: int, entry: str, name: str, about: os.stat_result, previous: dict[str, tuple[int, ...]]
    ) -> Iterator[tuple[str, BinaryIO]]:
        print_of = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if previous.get(name) == print_of:
            return
        previous[name] = print_of
        fits = self._files_left > 0 and about.st_size <= self._bytes_left
        opened = _open(folder, entry, os.O_NONBLOCK) if fits else None
        if opened is None:
            self.dropped += 1
            return
        self._files_left -= 1
        self._bytes_left -= about.st_size
        with os.fdopen(opened, "rb") as file:
            yield name, file


def _open(folder: int, entry: str, flags: int) -> int | None:
    try:
        return os.open(entry, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=folder)
    except OSError:
        return None


def clear() -> None:
    """Empties what a call does not leave to the next one of its session."""
    for folder in _CLEARED:
        with contextlib.suppress(OSError):
            _empty(folder)


def _empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)  # the keeper's own, or else it is not ours to change
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            _empty(entry.path)
            with contextlib.suppress(OSError):
                os.rmdir(entry.path)
        else:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
