"""One embedded Postgres: making its data directory and saying how to start it.

Postgres gets its data and its socket folder as open directories (`/proc/self/fd/N`). So under root its own
account needs no way through the folders above them, and no folder has to be opened for it. Clients use the
real path of the socket. Whoever may read the password file may log in, nobody else.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil

from cli.binaries import Account, account, programs
from cli.errors import CliError

VERSION = "18"
SUPERUSER = "postgres"
HBA = "# Written by Loci: the Unix socket alone, and everybody shows a password.\nlocal all all scram-sha-256\n"
CHILD = Path(__file__).with_name("child.py")
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "password_encryption": "scram-sha-256",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    # A checkpoint is followed by whole pages in the log: with 1 GB, as it is otherwise, often while much is stored.
    "max_wal_size": "2GB",
}
_LEAST_BUFFERS, _MOST_BUFFERS = 128 << 20, 4 << 30


@dataclass(frozen=True)
class Launch:
    """A command to exec and the descriptors that it inherits."""

    argv: list[str]
    descriptors: tuple[int, ...] = ()


def wrap(argv: Sequence[str], death_signal: signal.Signals, user: Account | None = None) -> list[str]:
    """`argv` through `cli/child.py`: it dies with this process, and runs as `user` if given."""
    who = f"{user.uid}:{user.gid}" if user else "-"
    return [sys.executable, "-SE", str(CHILD), str(int(death_signal)), str(os.getpid()), who, *argv]


def url(sockets: Path, role: str, password: str, database: str) -> str:
    """A connection URL through the Unix socket in the folder `sockets`."""
    return f"postgresql://{role}:{password}@/{database}?host={quote(str(sockets))}"


def shared_buffers(memory: int) -> str:
    """A fifth of the machine's `memory` (bytes), from 128 MB to 4 GB; what is not used of it, is not taken.

    An index of vectors that has to be copied in from the system's cache page by page takes twice the time.
    """
    return f"{max(_LEAST_BUFFERS, min(memory // 5, _MOST_BUFFERS)) >> 20}MB"


class Cluster:
    """A data directory (`data`), a socket folder (`sockets`) and the account that owns both."""

    def __init__(self, data: Path, sockets: Path) -> None:
        self.data = data
        self.sockets = sockets
        self._user = account()
        self._programs = programs(self._user)

    def prepare(self, superuser_password: str) -> bool:
        """Make what is missing; True when the data directory is new. Raises CliError when it is damaged."""
        self._own(self.sockets)
        if self.data.exists():
            self._check()
            self._leave_no_stale_lock()
            return False
        self._initialise(superuser_password)
        return True

    @contextmanager
    def launch(self, **settings: str) -> Iterator[Launch]:
        """Yields the command that starts the server; its descriptors are open within the `with` alone."""
        with ExitStack() as stack:
            data, sockets = self._handles(stack)
            options = SETTINGS | {"shared_buffers": shared_buffers(psutil.virtual_memory().total)}
            options |= {"unix_socket_directories": sockets.path} | settings
            argv = [str(self._programs / "postgres"), "-D", data.path]
            for name, value in options.items():
                argv += ["-c", f"{name}={value}"]
            # SIGINT is Postgres' fast shutdown: also when our process is killed, it ends cleanly.
            yield Launch(wrap(argv, signal.SIGINT, self._user), data.descriptors + sockets.descriptors)

    def ready(self) -> bool:
        """Returns whether the running server accepts connections."""
        lines = self._lock_lines()
        return len(lines) >= 8 and lines[7].strip() == "ready"

    def _check(self) -> None:
        try:
            version = (self.data / "PG_VERSION").read_text(errors="replace").strip()
        except OSError as error:
            raise self._damaged(f"PG_VERSION cannot be read, {error.strerror}") from None
        if version != VERSION:
            raise self._damaged(f"PG_VERSION says {version[:20]!r}, expected '{VERSION}'")

    def _damaged(self, reason: str) -> CliError:
        advice = "restore it from a backup, or move it away to begin anew"
        return CliError(f"the data directory {self.data} is damaged ({reason}): {advice}")

    def _initialise(self, superuser_password: str) -> None:
        """initdb beside its final place, renamed when complete: a start cut off leaves nothing half made."""
        fresh = self.data.with_name(f"{self.data.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        self._own(fresh)
        password_file = self.sockets / "password"
        _write_private(password_file, superuser_password + "\n", self._user)
        try:
            with ExitStack() as stack:
                data, sockets = self._handles(stack, data=fresh)
                argv = [
                    str(self._programs / "initdb"),
                    "-D",
                    data.path,
                    "-U",
                    SUPERUSER,
                    "--auth=scram-sha-256",
                ]
                argv += [f"--pwfile={sockets.path}/password", "--encoding=UTF8", "--no-instructions"]
                argv += ["--locale-provider=builtin", "--locale=C.UTF-8"]
                done = subprocess.run(
                    wrap(argv, signal.SIGKILL, self._user),
                    pass_fds=data.descriptors + sockets.descriptors,
                    cwd="/",
                    env={"PATH": os.defpath, "LC_ALL": "C"},
                    capture_output=True,
                    text=True,
                    check=False,
                )
        finally:
            password_file.unlink(missing_ok=True)
        if done.returncode != 0:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise CliError(f"cannot make the data directory {self.data}: {reason}")
        _write_private(fresh / "pg_hba.conf", HBA, self._user)
        fresh.rename(self.data)

    def _leave_no_stale_lock(self) -> None:
        """Wait for a server that a killed supervisor left shutting down; drop the lock file of a dead one.

        Postgres itself judges by the process id alone, which after a reboot may be anybody's.
        """
        lines = self._lock_lines()
        if not lines or not lines[0].strip().isdigit():
            return
        server, deadline = int(lines[0]), time.monotonic() + 10
        while _runs_on(server, self.data):
            if time.monotonic() > deadline:
                raise CliError(f"a Postgres (process {server}) still runs on {self.data}; end it and start again")
            time.sleep(0.05)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def _lock_lines(self) -> list[str]:
        try:
            return (self.data / "postmaster.pid").read_text(errors="replace").splitlines()
        except OSError:
            return []

    def _own(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        if self._user:
            os.chown(folder, self._user.uid, self._user.gid)

    def _handles(self, stack: ExitStack, data: Path | None = None) -> tuple[_Handle, _Handle]:
        return (
            stack.enter_context(_handle(data or self.data, self._user)),
            stack.enter_context(_handle(self.sockets, self._user)),
        )


@dataclass(frozen=True)
class _Handle:
    """A folder under the name by which the server opens it, and what it must inherit for that."""

    path: str
    descriptors: tuple[int, ...] = ()


@contextmanager
def _handle(folder: Path, user: Account | None) -> Iterator[_Handle]:
    if user is None or not sys.platform.startswith("linux"):
        yield _Handle(str(folder))
        return
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield _Handle(f"/proc/self/fd/{descriptor}", (descriptor,))
    finally:
        os.close(descriptor)


def _write_private(path: Path, text: str, user: Account | None) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    if user:
        os.chown(path, user.uid, user.gid)


def _runs_on(server: int, data: Path) -> bool:
    try:
        process = psutil.Process(server)
        return process.name().startswith("postgres") and Path(process.cwd()) == data.resolve()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
