"""The output of a process: all of it goes to a file in LOCI_HOME/logs, warnings and errors to the terminal, too."""

from __future__ import annotations

import json
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

LIMIT = 16 << 20  # bytes; beyond it the file becomes `<name>.log.1` and a new one begins
LOUD = frozenset({"warning", "error", "critical"})


class LogFile:
    """One process' log. `tail` keeps its last lines, to say why it ended."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name = name
        self._path = folder / f"{name}.log"
        self._file = self._open()
        self._rest = b""
        self.tail: deque[str] = deque(maxlen=20)

    def write(self, chunk: bytes) -> None:
        """Take what came from the process, in pieces of any size."""
        with suppress(OSError):  # a full disk is no reason to lose the process, too
            self._file.write(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-65536:]
        for line in lines:
            self._note(line.decode(errors="replace").rstrip())
        if self._file.tell() > LIMIT:
            self._file.close()
            self._path.replace(self._path.with_suffix(".log.1"))
            self._file = self._open()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def last_line(self) -> str:
        """Returns the reason of its end: Postgres' last FATAL, else its last line (of JSON the message)."""
        fatal = [line for line in self.tail if "FATAL:" in line or "PANIC:" in line]
        for line in reversed(fatal or self.tail):
            if line:
                return _parse(line).get("message") or line
        return "it said nothing"

    def _note(self, line: str) -> None:
        self.tail.append(line)
        fields = _parse(line)
        if fields.get("level") in LOUD:
            print(f"{self._name}: {fields.get('level')}: {fields.get('message')}", file=sys.stderr, flush=True)

    def _open(self) -> BinaryIO:
        return self._path.open("ab", buffering=0)


def _parse(line: str) -> dict[str, str]:
    if not line.startswith("{"):
        return {}
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return {name: str(value) for name, value in fields.items()}
