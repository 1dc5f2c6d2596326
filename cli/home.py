"""LOCI_HOME: its folders, their modes, and the lock that lets one supervisor at a time use it.

    postgres/   the data of the embedded Postgres          run/    sockets and the lock
    secrets/    keys and passwords, each file 0600         logs/   one file per process

The folders are ours and 0700. LOCI_HOME itself, when it was there before, and those
above it keep their modes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CliError

SOCKET_PATH_LIMIT = 103  # bytes; 107 on Linux, 103 on macOS
LONGEST_SOCKET = "postgres/.s.PGSQL.5432.lock"


@dataclass(frozen=True)
class Home:
    """The paths in LOCI_HOME."""

    root: Path

    @property
    def data(self) -> Path:
        """The embedded Postgres' data directory."""
        return self.root / "postgres"

    @property
    def secrets(self) -> Path:
        """Keys and passwords."""
        return self.root / "secrets"

    @property
    def logs(self) -> Path:
        """One file per process."""
        return self.root / "logs"

    @property
    def sockets(self) -> Path:
        """The folder of the sockets; a short one elsewhere when a socket's path would be too long."""
        ours = self.root / "run"
        if len(os.fsencode(ours / LONGEST_SOCKET)) <= SOCKET_PATH_LIMIT:
            return ours
        name = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:12]
        return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"loci-{os.geteuid()}-{name}"  # noqa: S108 - made with a check of its owner

    def socket(self, service: str) -> Path:
        """The Unix socket of a service."""
        return self.sockets / f"{service}.sock"

    def make(self) -> None:
        """Create what is missing. Raises CliError when LOCI_HOME cannot be used."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.secrets, self.logs, self.root / "run", self.sockets):
                _make_private(folder)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise CliError(f"LOCI_HOME={self.root} cannot be used: {error.strerror or error}", code=2) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold LOCI_HOME for this process; the kernel lets go of it when the process ends in whatever way."""
        with open(self.root / "run" / "lock", "a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                raise CliError(
                    f"Loci already runs on LOCI_HOME={self.root} (process {file.read().strip() or 'unknown'})"
                ) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                if self.sockets.parent != self.root:
                    # What lies outside of LOCI_HOME does not stay when Loci has stopped.
                    shutil.rmtree(self.sockets, ignore_errors=True)


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.geteuid():
        raise PermissionError(0, f"{folder} belongs to another user")
    folder.chmod(0o700)


def write_secret(path: Path, text: str) -> None:
    """Write a 0600 file in one step: after a crash it holds all of `text` or is not there."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.rename(path)
