"""The choice of a sandbox: Docker if an engine answers and has the image, else bubblewrap, else none; or what is set.

Nothing is started before the first call, or `prepare` at the start of the service. An engine that answers but
fails to start sandboxes is passed over for a while.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.sandboxes.bubblewrap.source import create as create_bubblewrap
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings, Probe
from services.tool_runner.sandboxes.remote import RemoteSandbox

LOCAL_IMAGE = "loci-sandbox:latest"
_DEFAULT_SOCKET = "/var/run/docker.sock"
_PASSED_OVER_SECONDS = 60.0
Maker = Callable[[], Awaitable[Sandbox]]


@dataclass(frozen=True)
class SandboxSettings:
    """`kind` as LOCI_SANDBOX says it; `pull_seconds`: how long a missing image may take to come at start."""

    kind: str = "auto"
    docker: DockerSettings = field(default_factory=DockerSettings)
    pull_seconds: float = 120.0


class Engine(Sandbox, Protocol):
    """A sandbox that can say whether it would work; `sandboxes.docker.DockerSandbox` is the one."""

    async def probe(self, pull_seconds: float = 0.0) -> Probe: ...


class SandboxChoice:
    """Chooses on first use and stays with it, until told that it failed."""

    def __init__(
        self,
        settings: SandboxSettings,
        *,
        docker: Engine | None = None,
        bubblewrap: Maker | None = None,
        remote: RemoteSandbox | None = None,
    ) -> None:
        self._settings = settings
        self._docker: Engine = docker or DockerSandbox(settings.docker)
        self._docker_failed_at = float("-inf")
        self._bubblewrap = bubblewrap or (lambda: create_bubblewrap(settings.docker.warm))
        self._remote = remote
        self._chosen: Sandbox | None = None
        self._sandboxes: dict[str, Sandbox] = {}
        self._choosing = asyncio.Lock()

    async def prepare(self) -> str:
        """Fetches the image, removes orphans and chooses, at start beside serving. Returns the outcome as text."""
        image = self._settings.docker.image
        if image != LOCAL_IMAGE and self._tries_docker():
            await self._docker.probe(self._settings.pull_seconds)
            self._chosen = None
        try:
            return f"tools run in {(await self.get()).name}"
        except SandboxUnavailable as error:
            return f"custom tools cannot run: {error}"

    async def get(self) -> Sandbox:
        """Returns the sandbox that serves; raises SandboxUnavailable with what to install or which command to run."""
        async with self._choosing:
            if self._chosen is None:
                self._chosen = await self._choose()
            return self._chosen

    def forget(self, sandbox: Sandbox) -> None:
        """Chooses anew at the next call: this one failed. Calls that run in it go on."""
        if sandbox is self._docker:
            self._docker_failed_at = time.monotonic()
        if self._chosen is sandbox:
            self._chosen = None

    async def close(self) -> None:
        """Stops what is kept warm."""
        for sandbox in (*self._sandboxes.values(), self._docker):
            await sandbox.close()

    async def _choose(self) -> Sandbox:
        if self._remote:
            return await self._with(self._remote.kind.name, self._remote.make)
        match self._settings.kind:
            case "docker":
                return await self._with_docker()
            case "bubblewrap":
                return await self._with_bubblewrap()
        if time.monotonic() - self._docker_failed_at < _PASSED_OVER_SECONDS:
            return await self._first(self._with_bubblewrap, self._with_docker)
        return await self._first(self._with_docker, self._with_bubblewrap)

    async def _with_bubblewrap(self) -> Sandbox:
        return await self._with("bubblewrap", self._bubblewrap)

    async def _with(self, kind: str, make: Maker) -> Sandbox:
        """Makes each kind once: one that fails for one call may serve the next."""
        if kind not in self._sandboxes:
            self._sandboxes[kind] = await make()
        return self._sandboxes[kind]

    async def _first(self, *makers: Maker) -> Sandbox:
        """Returns the first that can be had; where none can, what is missing of all."""
        problems = []
        for make in makers:
            try:
                return await make()
            except SandboxUnavailable as error:
                problems.append(str(error))
        raise SandboxUnavailable("; ".join(problems))

    async def _with_docker(self) -> Sandbox:
        if not self._tries_docker():
            raise SandboxUnavailable(f"no container engine: {_DEFAULT_SOCKET} is absent and DOCKER_HOST is not set")
        probe = await self._docker.probe()
        if not probe.engine:
            raise SandboxUnavailable(probe.problem)
        if not probe.image:
            raise SandboxUnavailable(_missing_image(self._settings.docker.image))
        return self._docker

    def _tries_docker(self) -> bool:
        """Returns whether an engine is worth a process: looked for, not spoken to."""
        named = "DOCKER_HOST" in self._settings.docker.environment
        return self._settings.kind in ("auto", "docker") and (named or os.path.exists(_DEFAULT_SOCKET))


def _missing_image(image: str) -> str:
    command = "make sandbox-image" if image == LOCAL_IMAGE else f"docker pull {image}"
    return f"the container engine has no image {image}: run '{command}'"
