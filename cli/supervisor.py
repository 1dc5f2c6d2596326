"""`loci run`: everything of one machine, started in order, kept alive, stopped in the reverse order."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from contextlib import suppress
from typing import Any

from cli import ports
from cli.errors import CliError
from cli.home import Home
from cli.logfile import LogFile
from cli.names import DATABASE, SERVICES, role
from cli.plan import environment, postgres_program, python, python_program
from cli.postgres import SUPERUSER, Cluster, url, wrap
from cli.process import ChildProcess, Program
from cli.ready import ready_text
from cli.secrets import passwords
from cli.settings import RunSettings

HEALTH_DEADLINE = 60.0  # seconds from the start of the services until all are healthy
STOP_ORDER = (("gateway",), ("agent",), ("memory", "llm_gateway", "tool_runner"), ("postgres",))


class Supervisor:
    """Owns the processes of one LOCI_HOME."""

    def __init__(self, settings: RunSettings, home: Home) -> None:
        self._settings = settings
        self._home = home
        self._kept: dict[str, ChildProcess] = {}
        self._all_up = asyncio.Event()

    async def run(self) -> None:
        """Start all, then stay until a process cannot be kept alive. Raises CliError."""
        listening = ports.listen(self._settings)
        grpc_port = ports.choose_grpc_port(self._settings)
        await self._prepare_database()
        services = [self._service(name, grpc_port) for name in SERVICES]
        for program in [*services, self._gateway(listening)]:
            self._keep(program)
        await self._until_healthy()
        self._all_up.set()
        print(ready_text(self._settings, self._home, grpc_port), flush=True)
        await asyncio.wait(self._tasks(), return_when=asyncio.FIRST_COMPLETED)
        self._raise_failure()

    async def stop(self) -> None:
        """End every process, first those that others do not need."""
        for names in STOP_ORDER:
            await asyncio.gather(*(self._kept[name].stop() for name in names if name in self._kept))

    async def _prepare_database(self) -> None:
        task: dict[str, Any] = {
            "secrets": str(self._home.secrets),
            "logs": str(self._home.logs),
            "services": self._migration_urls(),
        }
        if self._settings.embedded:
            secret = passwords(self._home.secrets)
            cluster = Cluster(self._home.data, self._home.sockets / "postgres")
            await asyncio.to_thread(cluster.prepare, secret[SUPERUSER])
            databases = {
                name: url(cluster.sockets, SUPERUSER, secret[SUPERUSER], name) for name in ("postgres", DATABASE)
            }
            task |= {"superuser": databases, "passwords": secret}
            self._keep(postgres_program(cluster))
        await self._step("-m", "cli.prepare", stdin=json.dumps(task))

    async def _until_healthy(self) -> None:
        addresses = [f"unix://{self._home.socket(service)}" for service in SERVICES]
        host = self._settings.host if ":" not in self._settings.host else f"[{self._settings.host}]"
        addresses.append(f"http://{host}:{self._settings.port}/v1/health/")
        await self._step("-m", "cli.probe", str(HEALTH_DEADLINE), *addresses)

    async def _step(self, *arguments: str, stdin: str = "") -> None:
        """Run a short-lived helper to its end. Raises CliError when it or a kept process fails."""
        helper = await asyncio.create_subprocess_exec(
            *wrap(python(*arguments), signal.SIGKILL),
            env=environment(self._settings, self._home, "helper"),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd="/",
        )
        talk = asyncio.create_task(helper.communicate(stdin.encode()))
        try:
            await asyncio.wait({talk, *self._tasks()}, return_when=asyncio.FIRST_COMPLETED)
            self._raise_failure()
            output = (await talk)[1].decode(errors="replace").strip()
        finally:
            with suppress(ProcessLookupError):
                helper.kill()
            await asyncio.wait({talk})
        if helper.returncode:
            line = (output.splitlines() or [f"{arguments[-1]} ended with status {helper.returncode}"])[-1]
            raise CliError(line, code=max(helper.returncode, 1))

    def _keep(self, program: Program) -> asyncio.Task[None]:
        child = ChildProcess(program, LogFile(program.name, self._home.logs), self._all_up)
        self._kept[program.name] = child
        return child.start()

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [child.task for child in self._kept.values() if child.task]

    def _raise_failure(self) -> None:
        for task in self._tasks():
            if task.done():
                task.result()

    def _service(self, name: str, grpc_port: int | None) -> Program:
        variables = environment(self._settings, self._home, name, self._database_urls()[name])
        if grpc_port is not None:
            # The agent service listens there, and the others lead nobody there.
            variables["LOCI_AGENT_EXTERNAL_LISTEN"] = f"{self._settings.host}:{grpc_port}"
        return python_program(name, f"services.{name}", variables)

    def _gateway(self, listening: socket.socket) -> Program:
        variables = environment(self._settings, self._home, "gateway")
        variables["LOCI_LISTEN_FD"] = str(listening.fileno())
        self._listening = listening  # open for as long as the supervisor lives
        return python_program("gateway", "gateway", variables, (listening.fileno(),))

    def _database_urls(self) -> dict[str, str]:
        if not self._settings.embedded:
            return self._settings.databases
        secret, folder = passwords(self._home.secrets), self._home.sockets / "postgres"
        ours = {name: url(folder, role(name), secret[role(name)], DATABASE) for name in SERVICES}
        return ours | self._settings.databases

    def _migration_urls(self) -> dict[str, str]:
        direct = self._settings.environment.get("LOCI_DATABASE_DIRECT_URL")
        external = {name: direct or url for name, url in self._settings.databases.items()}
        return self._database_urls() | external
