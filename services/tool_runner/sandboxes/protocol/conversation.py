"""The conversation with a worker: jobs to it, events from it; the frames are in `wire.py`. Pure.

Whatever a worker sends is hostile. A `Conversation` takes its bytes as they come, in any pieces, and gives events;
a frame that is not due, too long, for another call or without its expected shape raises BadWorker, after which the
worker is to be killed. What it was promised to keep to, it is held to: windows, sizes, numbers of files.

    greeting --HELLO--> idle --job()--> running --ANSWER--> idle
"""

import json
import secrets
from collections.abc import Iterator
from typing import Any

from services.tool_runner.core.job import ExitReason, Job, Mode, Result
from services.tool_runner.sandboxes.protocol.answers import NAME_CHARS, CallAnswer
from services.tool_runner.sandboxes.protocol.connections import BadWorker, Connections
from services.tool_runner.sandboxes.protocol.events import Answered, Closed, Event, Greeted, Opened, Received, Widened
from services.tool_runner.sandboxes.protocol.wire import (
    CHUNK_BYTES,
    HEADER_BYTES,
    HELLO_TEXT,
    NONCE_BYTES,
    Frame,
    encode,
)

_STRANGER = "the sandbox began with {!r}: its image is of another release; run make sandbox-image"
_FIXED = {
    Frame.HELLO: 64,
    Frame.FILE: 4 * NAME_CHARS,
    Frame.DATA: CHUNK_BYTES,
    Frame.OUTPUT: 5 + CHUNK_BYTES,
    Frame.OPEN: 4,
    Frame.BYTES: 4 + CHUNK_BYTES,
    Frame.WINDOW: 8,
    Frame.CLOSE: 4,
}


class Conversation:
    """With one worker, over all its calls."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._greeted = False
        self._call: CallAnswer | None = None
        self._connections = Connections()

    def job(self, job: Job, *, counted: bool, network: bool, authority: str) -> Iterator[bytes]:
        """Yields the frames that give it a job. `counted`: memory and processes have their limits outside of it."""
        nonce = secrets.token_hex(NONCE_BYTES // 2)
        self._call = CallAnswer(job, nonce.encode())
        self._connections.begin(allowed=network)
        fields = _job_fields(job, counted=counted) | {"nonce": nonce, "network": network, "authority": authority}
        yield encode(Frame.JOB, json.dumps(fields).encode())
        for file in job.inputs:
            yield encode(Frame.FILE, file.name.encode())
            for start in range(0, len(file.content), CHUNK_BYTES):
                yield encode(Frame.DATA, file.content[start : start + CHUNK_BYTES])
        yield encode(Frame.GO)

    def forget(self, connection: int) -> None:
        """Notes that CLOSE is sent."""
        self._connections.forget(connection)

    def give_back(self, connection: int, size: int) -> None:
        """Notes that WINDOW is sent."""
        self._connections.give_back(connection, size)

    def partial(self) -> Result:
        """Returns what is known of a call whose worker ended: what it printed."""
        return self._call.so_far(ExitReason.KILLED) if self._call else Result(ExitReason.KILLED)

    def receive(self, chunk: bytes) -> Iterator[Event]:
        """Yields the events in what came; to be drained. Raises BadWorker."""
        self._buffer += chunk
        if not self._greeted:
            self._check_beginning()
        while len(self._buffer) >= HEADER_BYTES:
            kind, end = self._head()
            if len(self._buffer) < end:
                return
            body = bytes(memoryview(self._buffer)[HEADER_BYTES:end])
            del self._buffer[:end]
            yield from self._take(kind, body)

    def _check_beginning(self) -> None:
        """Refuses a sandbox of another kind before its bytes are taken for lengths."""
        start = bytes((Frame.HELLO,))
        if self._buffer and not self._buffer.startswith(start):
            raise BadWorker(_STRANGER.format(bytes(self._buffer[:40])))

    def _head(self) -> tuple[Frame, int]:
        size = int.from_bytes(self._buffer[1:HEADER_BYTES], "big")
        try:
            kind = Frame(self._buffer[0])
        except ValueError:
            raise BadWorker(f"the sandbox sent a frame of kind {self._buffer[0]}") from None
        most = self._call.longest_answer if kind is Frame.ANSWER and self._call else _FIXED.get(kind, 0)
        if size > most:
            raise BadWorker(f"the sandbox announced {size} bytes of {kind.name}; at most {most} are due")
        return kind, HEADER_BYTES + size

    def _take(self, kind: Frame, body: bytes) -> Iterator[Event]:
        if not self._greeted:
            yield self._greeting(kind, body)
            return
        call = self._call
        if call is None:
            raise BadWorker(f"the sandbox sent {kind.name} when it had no job")
        match kind:
            case Frame.OUTPUT:
                yield from call.take_output(body)
            case Frame.FILE:
                call.begin_file(body)
            case Frame.DATA:
                call.add_to_file(body)
            case Frame.ANSWER:
                yield from call.rest()
                self._call = None
                self._connections.end()
                yield Answered(call.answer(body))
            case Frame.OPEN | Frame.BYTES | Frame.WINDOW | Frame.CLOSE:
                yield from self._of_connection(kind, body, call)
            case _:
                raise BadWorker(f"the sandbox sent {kind.name}, which only the runner does")

    def _greeting(self, kind: Frame, body: bytes) -> Event:
        text = body.decode("utf-8", "replace")
        if kind is not Frame.HELLO or not text.startswith(HELLO_TEXT):
            raise BadWorker(_STRANGER.format(body[:40]))
        self._greeted = True
        return Greeted()

    def _of_connection(self, kind: Frame, body: bytes, call: CallAnswer) -> Iterator[Event]:
        if len(body) < 4:
            raise BadWorker(f"the sandbox sent {kind.name} for no connection")
        connection, rest = int.from_bytes(body[:4], "big"), body[4:]
        match kind:
            case Frame.OPEN:
                self._connections.open(connection)
                yield Opened(connection)
            case Frame.BYTES:
                if self._connections.take_data(connection, len(rest)):
                    yield Received(connection, rest)
            case Frame.WINDOW if connection == 0 and call.is_program:
                yield Widened(0, int.from_bytes(rest, "big"))
            case Frame.WINDOW:
                size = int.from_bytes(rest, "big")
                if self._connections.take_window(connection):
                    yield Widened(connection, size)
            case _:
                if self._connections.take_close(connection):
                    yield Closed(connection)


def _job_fields(job: Job, *, counted: bool) -> dict[str, Any]:
    limits = job.limits
    return {
        "mode": job.mode.value,
        "source": job.source,
        "function": job.function,
        "arguments": dict(job.arguments),
        "parameters": list(job.parameters or job.arguments),
        "schema": dict(job.schema),
        "environment": dict(job.environment),
        "argv": list(job.argv),
        "agent_state": job.agent_state,
        "client": job.client,
        "session": bool(job.session),
        "limits": {
            "seconds": 0 if job.mode is Mode.PROCESS else limits.seconds,
            "capture": limits.capture,
            "flood": limits.flood,
            "result": limits.result,
            "disk": limits.disk,
            "memory": 0 if counted else limits.memory,
            "processes": 0 if counted else limits.processes,
            "files": limits.files,
            "file_bytes": limits.file_bytes,
        },
    }
