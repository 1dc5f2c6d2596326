"""Workers that speak the wire in this process: they answer at once, or as the job's function says."""

import asyncio
import json

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.ports import Shape
from services.tool_runner.sandboxes.protocol.wire import HEADER_BYTES, Frame, encode


class FakeWorker:
    """`function` of a job: "echo" answers, "hang" never does, "die" ends without an answer, "garble" talks nonsense."""

    counted = True

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls: list[str] = []
        self.closed = False
        self.refuses: OSError | None = None
        self.out_of_memory = False
        self._written = bytearray()
        self._job: dict[str, object] = {}
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._outgoing.put_nowait(encode(Frame.HELLO, b"LOCI-WORKER 2 python"))

    async def read(self) -> bytes:
        return await self._outgoing.get()

    async def write(self, data: bytes) -> None:
        if self.refuses:
            raise self.refuses
        self._written += data
        while len(self._written) >= HEADER_BYTES:
            end = HEADER_BYTES + int.from_bytes(self._written[1:HEADER_BYTES], "big")
            kind, body = Frame(self._written[0]), bytes(self._written[HEADER_BYTES:end])
            del self._written[:end]
            if kind is Frame.JOB:
                self._job = json.loads(body)
            if kind is Frame.GO:
                self._go()

    def _go(self) -> None:
        function = str(self._job["function"])
        self.calls.append(function)
        match function:
            case "die":
                self.end()
            case "garble":
                self._outgoing.put_nowait(b"\xff" * 40)
            case "killed" | "echo":
                error = {"type": "ProcessEnded", "message": "by signal", "traceback": ""}
                how = {"reason": "ok", "result": str(self.number)}
                how = how if function == "echo" else {"reason": "killed", "error": error}  # type: ignore[dict-item]
                body = json.dumps({**how, "truncated": False, "files_dropped": 0}).encode()
                self._outgoing.put_nowait(encode(Frame.ANSWER, str(self._job["nonce"]).encode(), body))

    def end(self) -> None:
        """It is gone."""
        self._outgoing.put_nowait(b"")

    async def problem(self) -> str:
        return "it broke"

    async def ran_out_of_memory(self) -> bool:
        return self.out_of_memory

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed = True
        self.end()


class FakeSource:
    """Remembers whom it started; `broken`: it starts nobody."""

    name = "fake"
    image = "image:1"

    def __init__(self) -> None:
        self.workers: list[FakeWorker] = []
        self.shapes: list[tuple[Shape, str]] = []
        self.broken = self.mute = False

    async def start(self, shape: Shape, tenant: str) -> FakeWorker:
        await asyncio.sleep(0)
        if self.broken:
            raise SandboxUnavailable("nothing can be started")
        self.shapes.append((shape, tenant))
        worker = FakeWorker(len(self.workers))
        self.workers.append(worker)
        if self.mute:
            await worker.read()
            worker.end()
        return worker

    async def close(self) -> None:
        """Nothing is left."""

    @property
    def waiting(self) -> list[int]:
        """Those that had no job yet."""
        return [worker.number for worker in self.workers if not worker.closed and not worker.calls]
