"""Tools in containers, through the launcher process; see `launcher/`.

What it promises: no network, read-only root, no capability, no new privileges, our seccomp rules, limits of
memory, processes and CPU by control group, an unprivileged user, work directories in memory with a quota, and no
container left: not after the call, not after the death of this process (the worker's input closes), not after the
death of both (removed at the next start).
What it does not: the container shares the host's kernel; use an engine with gVisor (LOCI_SANDBOX_RUNTIME) or a
virtual machine where that is not enough.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from services.tool_runner.core.job import Layer, SandboxUnavailable
from services.tool_runner.sandboxes.launcher.wire import Message
from services.tool_runner.sandboxes.launcher_process import Channel, LauncherProcess
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.ports import Shape


@dataclass(frozen=True)
class DockerSettings:
    """`environment` is what the Docker SDK reads (DOCKER_HOST ...) and Python needs to find the launcher."""

    image: str = "loci-sandbox:latest"
    warm: int = 1  # workers kept ready
    runtime: str = ""  # of the engine, such as runsc; "" for its own
    keep_launcher_seconds: float = 60.0  # after its last container, then it ends
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Probe:
    """The answer of a container engine."""

    engine: bool
    image: bool
    problem: str


class DockerSource:
    """Starts containers by the launcher, which starts with the first one and ends when there was none for a while."""

    name = "docker"

    def __init__(self, settings: DockerSettings) -> None:
        self.image = settings.image
        self._settings = settings
        self._launcher: LauncherProcess | None = None
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def probe(self, pull_seconds: float = 0.0) -> Probe:
        """Asks the engine; fetches a missing image when given time for it, and removes orphans."""
        answer = await self._ask({"op": "probe", "pull_seconds": pull_seconds})
        if answer is None:
            return Probe(engine=False, image=False, problem="the sandbox launcher could not be started")
        return Probe(engine=answer["engine"], image=answer["image"], problem=answer["problem"])

    async def start(self, shape: Shape, tenant: str) -> "DockerWorker":
        """See `ports.WorkerSource`. Any container may serve any tenant: it is made for one worker."""
        channel = await self._open(shape)
        if shape.layer and channel.ended and channel.ended["no_layer"]:
            await self._add_layer(shape.layer)
            channel = await self._open(shape)
        if channel.ended:
            raise SandboxUnavailable(channel.ended["problem"])
        return DockerWorker(channel, self._look_if_idle)

    async def close(self) -> None:
        """Ends the launcher and with it every container."""
        if self._idle:
            self._idle.cancel()
        launcher, self._launcher = self._launcher, None
        if launcher:
            await launcher.close()

    async def _open(self, shape: Shape) -> Channel:
        launcher = await self._current()
        layer = shape.layer.key if shape.layer else ""
        sizes = {"memory": shape.memory, "processes": shape.processes, "cpus": shape.cpus, "disk": shape.disk}
        folders = [[folder.path, folder.writable] for folder in shape.host.folders]
        fields = {**sizes, "language": shape.language.value, "layer": layer, "host_folders": folders}
        try:
            return await launcher.open(fields)
        finally:
            self._look_if_idle()

    async def _add_layer(self, layer: Layer) -> None:
        answer = await self._ask({"op": "add_layer", "key": layer.key, "archive": str(layer.archive)})
        if answer is None or answer["problem"]:
            raise SandboxUnavailable(answer["problem"] if answer else "the sandbox launcher died")

    async def _ask(self, question: Message) -> Message | None:
        launcher = await self._current()
        try:
            return await launcher.ask(question)
        finally:
            self._look_if_idle()

    async def _current(self) -> LauncherProcess:
        async with self._starting:
            if self._idle:
                self._idle.cancel()
            if self._launcher is None or not self._launcher.alive:
                settings = self._settings
                try:
                    self._launcher = await LauncherProcess.start(settings.image, settings.runtime, settings.environment)
                except OSError as error:
                    raise SandboxUnavailable(f"the sandbox launcher cannot be started: {error}") from error
            return self._launcher

    def _look_if_idle(self) -> None:
        if self._idle:
            self._idle.cancel()
        if self._launcher and not self._launcher.busy:
            delay = self._settings.keep_launcher_seconds
            self._idle = asyncio.get_running_loop().call_later(delay, self._retire, self._launcher)

    def _retire(self, launcher: LauncherProcess) -> None:
        if not launcher.busy:
            launcher.end_input()
            self._launcher = None if self._launcher is launcher else self._launcher


class DockerWorker:
    """A worker in a container."""

    counted = True

    def __init__(self, channel: Channel, closed: Callable[[], None]) -> None:
        self._channel = channel
        self._closed = closed

    async def read(self) -> bytes:
        """See `ports.Worker`."""
        return await self._channel.read()

    async def write(self, data: bytes) -> None:
        """See `ports.Worker`."""
        await self._channel.write(data)

    async def problem(self) -> str:
        """See `ports.Worker`."""
        return str(self._channel.ended["problem"]) if self._channel.ended else ""

    async def ran_out_of_memory(self) -> bool:
        """See `ports.Worker`."""
        return bool(self._channel.ended and self._channel.ended["out_of_memory"])

    async def close(self) -> None:
        """See `ports.Worker`."""
        await self._channel.close()
        self._closed()


class DockerSandbox(PooledSandbox):
    """`ports.Sandbox` of containers, and the question whether they can be had."""

    def __init__(self, settings: DockerSettings) -> None:
        source = DockerSource(settings)
        super().__init__(source, settings.warm)
        self.probe = source.probe
