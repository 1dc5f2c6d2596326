"""Tools in single-use containers, through the launcher process; see `launcher/`.

What it promises: no network, read-only root, no capability, no new privileges, our seccomp rules, limits of
memory, processes and CPU by control group, an unprivileged user, work directories in memory with a quota, one
call per container, and no container left: not after the call, not after the death of this process (the
worker's input closes), not after the death of both (removed at the next start).
What it does not: the container shares the host's kernel; use an engine with gVisor or a virtual machine where
that is not enough.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.tool_runner.job import ExitReason, Job, Result, SandboxUnavailable
from services.tool_runner.sandboxes.exchange import BadWorker, died, result_from_fields
from services.tool_runner.sandboxes.launcher.wire import Message, job_to_fields
from services.tool_runner.sandboxes.launcher_process import LauncherProcess


@dataclass(frozen=True)
class DockerSettings:
    """`environment` is what the Docker SDK reads (DOCKER_HOST ...) and Python needs to find the launcher."""

    image: str = "loci-sandbox:latest"
    warm: int = 1  # workers kept started while calls come
    keep_warm_seconds: float = 300.0  # after the last call, then the launcher ends
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Probe:
    """What a container engine has for us."""

    engine: bool
    image: bool
    problem: str


class DockerSandbox:
    """Hands calls to the launcher, which starts with the first one and ends when none came for a while."""

    name = "docker"

    def __init__(self, settings: DockerSettings) -> None:
        self.image = settings.image
        self._settings = settings
        self._launcher: LauncherProcess | None = None
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def probe(self, pull_seconds: float = 0.0) -> Probe:
        """Ask the engine; fetches a missing image when given time for it, and removes orphans."""
        answer = await self._ask({"op": "probe", "pull_seconds": pull_seconds})
        if answer is None:
            return Probe(engine=False, image=False, problem="the sandbox launcher could not be started")
        return Probe(engine=answer["engine"], image=answer["image"], problem=answer["problem"])

    async def run(self, job: Job) -> Result:
        """See `ports.Sandbox`."""
        answer = await self._ask({"op": "run", "job": job_to_fields(job)})
        if answer is None:
            return died(ExitReason.KILLED, "the sandbox launcher died while the tool ran; it may have acted")
        if "unavailable" in answer:
            raise SandboxUnavailable(answer["unavailable"])
        try:
            return result_from_fields(answer["result"])
        except BadWorker as error:
            return died(ExitReason.KILLED, str(error))

    async def close(self) -> None:
        """End the launcher and with it every container."""
        if self._idle:
            self._idle.cancel()
        launcher, self._launcher = self._launcher, None
        if launcher:
            await launcher.close()

    async def _ask(self, request: Message) -> Message | None:
        if self._idle:
            self._idle.cancel()
        launcher = await self._current()
        try:
            return await launcher.ask(request)
        finally:
            if not launcher.busy:
                delay = self._settings.keep_warm_seconds
                self._idle = asyncio.get_running_loop().call_later(delay, self._retire, launcher)

    async def _current(self) -> LauncherProcess:
        async with self._starting:
            if self._launcher is None or not self._launcher.alive:
                try:
                    self._launcher = await LauncherProcess.start(
                        self._settings.image, self._settings.warm, self._settings.environment
                    )
                except OSError as error:
                    raise SandboxUnavailable(f"the sandbox launcher cannot be started: {error}") from error
            return self._launcher

    def _retire(self, launcher: LauncherProcess) -> None:
        if not launcher.busy:
            launcher.end_input()
            self._launcher = None if self._launcher is launcher else self._launcher
