"""The tests' Postgres: the supervisor's own code, in a temporary folder, without fsync unless asked for."""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from cli.names import SERVICES, role
from cli.postgres import SUPERUSER, Cluster, url
from cli.roles import create_database, create_roles, create_schemas
from services.common.migrate import migrate

TEMPLATE = "template_loci"
MIGRATED = "template_migrated"
# Data that the tests may lose are kept in memory where the machine has a file system for that.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None
FAST = {"fsync": "off", "full_page_writes": "off"}


@dataclass
class Postgres:
    """A running server; every method may be called from any thread, also within an event loop."""

    cluster: Cluster
    passwords: dict[str, str]
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _migrated: bool = False

    @classmethod
    @contextmanager
    def started(cls, *, durable: bool = False) -> Iterator[Postgres]:
        """Start a server in a new folder; afterwards neither is left. durable: with fsync, as in production."""
        folder = Path(tempfile.mkdtemp(prefix="loci-test-", dir=None if durable else MEMORY))
        try:
            cluster = Cluster(folder / "postgres", folder / "sockets")
            passwords = {name: secrets.token_hex(16) for name in (SUPERUSER, *map(role, SERVICES))}
            cluster.prepare(passwords[SUPERUSER])
            server = cls(cluster, passwords)
            with running_cluster(cluster, folder / "log", {} if durable else FAST):
                server._in_thread(server._make_template())
                yield server
        finally:
            shutil.rmtree(folder)

    def url(self, name: str, database: str) -> str:
        """A URL for the role `name`."""
        return url(self.cluster.sockets, name, self.passwords[name], database)

    def service_url(self, service: str, database: str) -> str:
        """A URL for the role of `service` ("agent", "memory", "llm_gateway", "tool_runner")."""
        return self.url(role(service), database)

    def superuser_url(self, database: str = "postgres") -> str:
        """A URL for the superuser, whom no service ever is."""
        return self.url(SUPERUSER, database)

    def create_database(self, template: str = TEMPLATE) -> str:
        """A new database with every service's schema; returns its name."""
        name = f"test_{next(self._numbers)}"
        self._in_thread(self._copy(name, template))
        return name

    def drop_database(self, name: str) -> None:
        """Remove it, whoever is still connected."""
        self._in_thread(self._execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))

    def migrated_template(self) -> str:
        """Returns the name of a database with every service's tables; the first call makes it."""
        if not self._migrated:
            self._in_thread(self._copy(MIGRATED, TEMPLATE))
            for service in SERVICES:  # one after the other: Alembic's context is global
                self._in_thread(_migrate(self.service_url(service, MIGRATED), f"services.{service}"))
            self._migrated = True
        return MIGRATED

    async def _make_template(self) -> None:
        superuser = await asyncpg.connect(self.superuser_url())
        await create_roles(superuser, self.passwords)
        await create_database(superuser, TEMPLATE)
        inside = await asyncpg.connect(self.superuser_url(TEMPLATE))
        await create_schemas(inside, TEMPLATE)
        await inside.close()
        await superuser.close()

    async def _copy(self, name: str, template: str) -> None:
        grants = [f"GRANT CONNECT, TEMPORARY ON DATABASE {name} TO {role(service)}" for service in SERVICES]
        await self._execute(
            f"CREATE DATABASE {name} TEMPLATE {template}",
            f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
            *grants,
        )

    async def _execute(self, *statements: str) -> None:
        connection = await asyncpg.connect(self.superuser_url())
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    def _in_thread(self, work: Coroutine[Any, Any, None]) -> None:
        """Fixtures are set up inside and outside of event loops; a thread of its own suits both."""
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, work).result()


async def _migrate(url: str, package: str) -> None:
    await migrate(url, package)


@contextmanager
def running_cluster(cluster: Cluster, log: Path, settings: dict[str, str]) -> Iterator[None]:
    """Runs the server of a prepared cluster until the end of the `with`; stderr goes to `log`."""
    with log.open("wb") as output, cluster.launch(**settings) as launch:
        process = subprocess.Popen(launch.argv, pass_fds=launch.descriptors, stderr=output, cwd="/")
    try:
        deadline = time.monotonic() + 20
        while not cluster.ready():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Postgres did not start: {log.read_text()}")
            time.sleep(0.01)
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)
