"""The runner's end of one worker: gives it jobs, takes what comes, and relays its connections to a tunnel."""

import asyncio
import logging
from typing import Any

from services.tool_runner.core.job import ExitReason, Job, Output, Result, SandboxUnavailable
from services.tool_runner.core.ports import NO_ENDS, Ends, Process
from services.tool_runner.sandboxes.ports import DeliveryUnknown, Worker
from services.tool_runner.sandboxes.protocol import events
from services.tool_runner.sandboxes.protocol.answers import died_result
from services.tool_runner.sandboxes.protocol.connections import BadWorker
from services.tool_runner.sandboxes.protocol.conversation import Conversation
from services.tool_runner.sandboxes.protocol.wire import Frame, encode
from services.tool_runner.sandboxes.streams import RelayedConnection, WorkerProcess

_START_SECONDS = 20.0
_GRACE_SECONDS = 3.0  # on top of the tool's own time, for the worker to notice and answer
_FILE_BYTES_PER_SECOND = 16 * 2**20  # what the transport of files is at least given time for
_ENDED = "the sandbox ended without an answer"
_UNKNOWN = "the sandbox was lost as it was given the call; whether the tool began is not known"
_log = logging.getLogger(__name__)


class Channel:
    """One call at a time. After anything but an answer, the worker is of no more use, and `usable` is False."""

    def __init__(self, worker: Worker) -> None:
        self.usable = self.closed = False
        self._worker = worker
        self._conversation = Conversation()
        self._writing = asyncio.Lock()
        self._reading: asyncio.Task[bytes] | None = None
        self._ends = NO_ENDS
        self._connections: dict[int, RelayedConnection] = {}
        self._tunnels: set[asyncio.Task[None]] = set()
        self._process: WorkerProcess | None = None
        self._result: Result | None = None

    async def greet(self) -> None:
        """Waits until it is ready; raises SandboxUnavailable with what is the matter."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not self.usable:
                    await self._turn()
        except TimeoutError:
            raise SandboxUnavailable(f"no worker within {_START_SECONDS:g} s") from None
        except BadWorker as error:
            raise SandboxUnavailable(str(error)) from error
        except (EOFError, OSError) as error:
            problem = await self._worker.problem() or str(error) or "the sandbox ended at once"
            raise SandboxUnavailable(problem) from error
        self._watch()

    @property
    def idle(self) -> bool:
        """Returns whether it waits for a job, and has neither ended nor spoken."""
        return self.usable and self._reading is not None and not self._reading.done()

    async def serve(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        """Serves its one call to its end. Raises SandboxUnavailable where the worker was gone before it had the job."""
        self.usable, began = False, False
        try:
            async with asyncio.timeout(_patience(job)):
                await self._give(job, ends)
                began = True
                while self._result is None:
                    await self._turn()
            self.usable = True
            return self._result
        except TimeoutError:
            return self._died_result(ExitReason.TIMEOUT, f"no result after {job.limits.seconds:g} s")
        except BadWorker as error:
            return self._died_result(ExitReason.KILLED, str(error))
        except DeliveryUnknown as error:
            return self._died_result(ExitReason.KILLED, f"{_UNKNOWN}: {error}")
        except (EOFError, OSError) as error:
            if not began:
                raise SandboxUnavailable(await self._worker.problem() or _ENDED) from error
            return self._died_result(ExitReason.KILLED, _ENDED)
        finally:
            await self._hang_up()
            if self.usable:
                self._watch()

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        """Starts a job of mode PROCESS; raises SandboxUnavailable. Closing the process closes the worker."""
        self.usable = False
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._give(job, ends)
        except (TimeoutError, OSError) as error:
            raise SandboxUnavailable(await self._worker.problem() or _ENDED) from error
        process = self._process = WorkerProcess(self._say_input, self.close)
        process.following = asyncio.create_task(self._follow(process))
        return process

    async def close(self) -> None:
        """Kills the worker. Idempotent."""
        self.usable, self.closed = False, True
        try:
            await _end_task(self._process.following if self._process else None)
            await self._hang_up()
            await _end_task(self._reading)
        finally:
            await self._worker.close()

    async def ran_out_of_memory(self) -> bool:
        """Returns whether the kernel killed a process of it for its memory."""
        return await self._worker.ran_out_of_memory()

    def _died_result(self, reason: ExitReason, message: str) -> Result:
        return died_result(reason, message, of=self._conversation.partial())

    async def _give(self, job: Job, ends: Ends) -> None:
        self._result, self._ends = None, ends
        tunnel = ends.tunnel
        frames = self._conversation.job(
            job,
            counted=self._worker.counted,
            network=tunnel is not None,
            authority=tunnel.authority if tunnel else "",
        )
        # Small ones together: a packet each would cost more than the call.
        await self._write(b"".join(frames))

    async def _turn(self) -> None:
        """Takes what comes next; raises EOFError, OSError, BadWorker."""
        reading, self._reading = self._reading or asyncio.create_task(self._read()), None
        try:
            chunk = await reading
        finally:
            await _end_task(reading)
        if not chunk:
            raise EOFError
        for event in self._conversation.receive(chunk):
            await self._hear(event)

    async def _read(self) -> bytes:
        return await self._worker.read()

    def _watch(self) -> None:
        """Reads ahead of the next job, so that a worker that ended meanwhile is known to have."""
        self._reading = asyncio.create_task(self._read())

    async def _hear(self, event: events.Event) -> None:
        match event:
            case events.Greeted():
                self.usable = True
            case Output():
                if self._ends.on_output:
                    self._ends.on_output(event)
                if self._process and event.stream == "stderr":
                    self._process.complain(event.text)
            case events.Written():
                if self._process:
                    await self._process.put(event.data)
            case events.Opened():
                self._open(event.connection)
            case events.Received():
                self._connections[event.connection].put(event.data)
            case events.Widened(0):
                if self._process:
                    self._process.widen(event.size)
            case events.Widened():
                self._connections[event.connection].widen(event.size)
            case events.Closed():
                self._connections[event.connection].lose()
            case events.Answered():
                self._result = event.result

    def _open(self, identity: int) -> None:
        tunnel = self._ends.tunnel
        assert tunnel  # else the conversation refuses it
        connection = self._connections[identity] = RelayedConnection(identity, self._write_frame)

        async def serve() -> None:
            try:
                await tunnel.serve(connection)
            # A supervisor: what goes wrong on one connection ends that one.
            except Exception:  # noqa: BLE001
                _log.exception("a connection of a tool failed")
            finally:
                self._conversation.forget(identity)
                self._connections.pop(identity, None)
                await connection.close()

        task = asyncio.create_task(serve())
        self._tunnels.add(task)
        task.add_done_callback(self._tunnels.discard)

    async def _follow(self, process: WorkerProcess) -> None:
        try:
            while self._result is None:
                await self._turn()
            if error := self._result.error:
                process.complain(f"\n{error.message}")
        except (EOFError, OSError):
            process.complain(f"\n{_ENDED}")
        except BadWorker as error:
            process.complain(f"\n{error}")
        finally:
            await process.end()

    async def _hang_up(self) -> None:
        """Ends every tunnel of the call."""
        for connection in self._connections.values():
            connection.abandon()
        tunnels = list(self._tunnels)
        for task in tunnels:
            task.cancel()
        await asyncio.gather(*tunnels, return_exceptions=True)
        self._connections.clear()

    async def _say_input(self, data: bytes) -> None:
        await self._write(encode(Frame.INPUT, data))

    async def _write_frame(self, kind: Frame, identity: int, data: bytes) -> None:
        if kind is Frame.WINDOW:
            self._conversation.give_back(identity, int.from_bytes(data, "big"))
        await self._write(encode(kind, identity.to_bytes(4, "big"), data))

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            await self._worker.write(data)


def _patience(job: Job) -> float:
    """Seconds until a worker that does not answer is given up."""
    input_bytes = sum(len(file.content) for file in job.inputs)
    return job.limits.seconds + _GRACE_SECONDS + (input_bytes + job.limits.file_bytes) / _FILE_BYTES_PER_SECOND


async def _end_task(task: asyncio.Task[Any] | None) -> None:
    """Cancels it where it still runs, and waits for its end."""
    if task and not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
