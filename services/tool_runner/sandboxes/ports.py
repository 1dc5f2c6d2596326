"""A kind of sandbox, as `pool.py` needs it: a source of workers. All else is the same for all of them."""

from dataclasses import dataclass
from typing import Protocol

from services.tool_runner.core.job import NOTHING_SHOWN, HostView, Job, Language, Layer


@dataclass(frozen=True)
class Shape:
    """The fixed properties of a worker: a warm one serves only calls of its own shape."""

    language: Language
    memory: int
    processes: int
    cpus: float
    disk: int
    layer: Layer | None = None
    host: HostView = NOTHING_SHOWN

    @property
    def kept_warm(self) -> bool:
        """Returns whether workers may wait for calls: a home is one worker's at a time."""
        return not self.host.home


def shape_of(job: Job) -> Shape:
    """Returns the shape that a call needs."""
    limits = job.limits
    return Shape(job.language, limits.memory, limits.processes, limits.cpus, limits.disk, job.layer, job.host)


class DeliveryUnknown(ConnectionError):
    """What was written may have arrived, to its last byte: nobody can say."""


class Worker(Protocol):
    """A started `worker/` behind a stream of bytes; it may not have said hello yet. See `protocol/wire.py`."""

    # Whether memory and processes are counted outside of it, by a control group.
    counted: bool

    async def read(self) -> bytes:
        """Returns what it wrote; b"" once it is gone. Raises OSError."""
        ...

    async def write(self, data: bytes) -> None:
        """Writes to its input; waits while it does not read. Raises OSError when it is gone: DeliveryUnknown where all
        of it may have arrived.
        """
        ...

    async def problem(self) -> str:
        """Returns, once it is gone, what it or its starter complained of; "" for nothing."""
        ...

    async def ran_out_of_memory(self) -> bool:
        """Returns, once it is gone, whether the kernel killed a process of it for its memory."""
        ...

    async def close(self) -> None:
        """Kills it and leaves nothing of it. Idempotent."""
        ...


class WorkerSource(Protocol):
    """Starts workers in one kind of sandbox."""

    name: str
    image: str

    async def start(self, shape: Shape, tenant: str) -> Worker:
        """Returns a fresh worker; raises SandboxUnavailable, and leaves nothing then.

        `tenant` is "" for one that is kept warm for anybody: only sources whose places are bound to tenants need it.
        """
        ...

    async def close(self) -> None:
        """Ends what is left. Idempotent."""
        ...
