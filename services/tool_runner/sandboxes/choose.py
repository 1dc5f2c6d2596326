"""Which sandbox serves: Docker where an engine answers and has the image, else bubblewrap, else none.

Nothing is started before the first call, or `prepare` at the start of the service.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from services.tool_runner.job import SandboxUnavailable
from services.tool_runner.ports import Sandbox
from services.tool_runner.sandboxes.bubblewrap import BubblewrapSandbox
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings

LOCAL_IMAGE = "loci-sandbox:latest"
_DEFAULT_SOCKET = "/var/run/docker.sock"
Kind = Literal["auto", "docker", "bubblewrap"]


@dataclass(frozen=True)
class SandboxSettings:
    """`kind` as LOCI_SANDBOX says it; `pull_seconds`: how long a missing image may take to come at start."""

    kind: Kind = "auto"
    docker: DockerSettings = field(default_factory=DockerSettings)
    pull_seconds: float = 120.0


class SandboxChoice:
    """Chooses on first use and stays with it, until told that it failed."""

    def __init__(
        self,
        settings: SandboxSettings,
        bubblewrap: Callable[[], Awaitable[Sandbox]] = BubblewrapSandbox.create,
    ) -> None:
        self._settings = settings
        self._docker = DockerSandbox(settings.docker)
        self._bubblewrap = bubblewrap
        self._chosen: Sandbox | None = None
        self._choosing = asyncio.Lock()

    async def prepare(self) -> str:
        """At start, beside serving: fetch the image, remove orphans, choose. Gives the outcome as text."""
        image = self._settings.docker.image
        if image != LOCAL_IMAGE and self._tries_docker():
            await self._docker.probe(self._settings.pull_seconds)
            self._chosen = None
        try:
            return f"tools run in {(await self.get()).name}"
        except SandboxUnavailable as error:
            return f"custom tools cannot run: {error}"

    async def get(self) -> Sandbox:
        """The sandbox that serves; raises SandboxUnavailable with what to install or which command to run."""
        async with self._choosing:
            if self._chosen is None:
                self._chosen = await self._choose()
            return self._chosen

    def forget(self, sandbox: Sandbox) -> None:
        """It failed: choose anew at the next call."""
        if self._chosen is sandbox:
            self._chosen = None

    async def close(self) -> None:
        """Stop what is kept warm."""
        await self._docker.close()

    async def _choose(self) -> Sandbox:
        match self._settings.kind:
            case "docker":
                return await self._with_docker()
            case "bubblewrap":
                return await self._bubblewrap()
        try:
            return await self._with_docker()
        except SandboxUnavailable as docker:
            try:
                return await self._bubblewrap()
            except SandboxUnavailable as bubblewrap:
                raise SandboxUnavailable(f"{docker}; {bubblewrap}") from bubblewrap

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
        """Whether an engine is worth a process: looked for, not spoken to."""
        named = "DOCKER_HOST" in self._settings.docker.environment
        return self._settings.kind != "bubblewrap" and (named or os.path.exists(_DEFAULT_SOCKET))


def _missing_image(image: str) -> str:
    command = "make sandbox-image" if image == LOCAL_IMAGE else f"docker pull {image}"
    return f"the container engine has no image {image}: run '{command}'"
