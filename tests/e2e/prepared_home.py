"""A LOCI_HOME as the first start leaves it (keys, roles, migrated schemas), made once in a process and copied."""

from __future__ import annotations

import asyncio
import atexit
import functools
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cli.home import Home
from cli.names import DATABASE, SERVICES, role
from cli.postgres import SUPERUSER, Cluster, url
from cli.prepare import prepare
from cli.secrets import passwords
from tests.postgres import FAST, running_cluster


def copy_prepared_home(home: Path, *, durable: bool) -> None:
    """Makes `home` a LOCI_HOME whose first start has nothing to prepare: 0.1 s instead of 2.

    durable: its Postgres waits for the disk. Only a machine that is lost needs that: what a killed process wrote, the
    kernel has.
    """
    # With owners and modes: as root, the data are another account's.
    subprocess.run(["cp", "-a", str(_prepared()), str(home)], check=True)
    if not durable:
        with (Home(home).data / "postgresql.conf").open("a") as settings:
            settings.writelines(f"{name} = {value}\n" for name, value in FAST.items())


@functools.cache
def _prepared() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="loci-prepared-"))
    atexit.register(shutil.rmtree, folder)
    home = Home(folder / "home")
    home.make()
    secret, cluster = passwords(home.secrets), Cluster(home.data, home.sockets / "postgres")
    cluster.prepare(secret[SUPERUSER])

    def of(name: str, database: str) -> str:
        return url(cluster.sockets, name, secret[name], database)

    task = {
        "secrets": str(home.secrets),
        "logs": str(home.logs),
        "superuser": {name: of(SUPERUSER, name) for name in ("postgres", DATABASE)},
        "passwords": secret,
        "services": {name: of(role(name), DATABASE) for name in SERVICES},
    }
    with running_cluster(cluster, folder / "log", FAST), ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, prepare(task)).result()  # in a thread: there may be an event loop in this one
    shutil.rmtree(home.sockets)
    return home.root
