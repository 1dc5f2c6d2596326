"""One call as the keeper sees it: the process, its pipes, its limits, and at last its outcome."""

import os
import select
import signal
import time
from collections.abc import Iterator
from typing import Any

from . import tool
from .frames import WINDOW, Wire
from .outcome import Outcome, check, failure, frame
from .output import OutputCapture
from .relay import Door, environment
from .starting import ToolProcess, node_options, start_node, start_program, start_python

_LOOK_SECONDS = 0.05
_NODE_PARTS = ("mode", "source", "function", "arguments", "parameters", "agent_state", "client", "limits")
_STDIN = (0).to_bytes(4, "big")  # the connection id of a program's stdin in WINDOW


class Call:
    """`outcome` is set once, and then everything of the call is to be ended before `finish`."""

    def __init__(
        self, job: dict[str, Any], wire: Wire, warm: ToolProcess | None, *, language: str, memory: int
    ) -> None:
        self.outcome: Outcome | None = None
        self._limits = job["limits"]
        self._is_program = job["mode"] == "process"
        self._left = bytearray()
        seconds = self._limits["seconds"]
        self._deadline = time.monotonic() + seconds if seconds else None
        names = job["environment"] | environment(network=job["network"], authority=job["authority"])
        if self._is_program and job["network"]:
            names |= node_options(names)
        self._kills = tool.memory_kills()  # of earlier calls of a session, or of a host
        self._process = _begin(job, names, warm, language=language, memory=memory)
        self._feed = InputFeed(self._process.feed, wire if self._is_program else None)
        if language == "node" and not self._is_program:
            tool.limit(self._process.child, self._limits)
            self._feed.add(frame({part: job[part] for part in _NODE_PARTS} | {"environment": names}))
            self._feed.add(b"")
        pipes = {1: self._process.stdout, 2: self._process.stderr}
        self._output = OutputCapture(wire, pipes, None if self._is_program else self._limits)
        self._watched = _pidfd(self._process.child)

    def doors(self) -> Iterator[Door]:
        """See `relay.Relay.doors`."""
        yield from self._output.doors()
        yield from self._feed.doors()
        if self._process.outcome is not None:
            yield self._process.outcome, select.POLLIN, lambda _: self._read_outcome()
        if self._watched is not None:
            yield self._watched, select.POLLIN, lambda _: None  # `look` looks

    def input(self, data: bytes) -> None:
        """Adds to a program's stdin; b"": its end."""
        if self._is_program:
            self._feed.add(data)

    def patience(self) -> float | None:
        """Seconds until something may be due though nothing moves; None for never."""
        looks = _LOOK_SECONDS if self._limits["memory"] or self._watched is None else None
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        return min((seconds for seconds in (looks, left) if seconds is not None), default=None)

    def look(self) -> None:
        """Looks at what does not announce itself."""
        if self.outcome is None and self._output.flooded:
            message = f"the tool printed more than {self._limits['flood']} bytes"
            self.outcome = failure("output_too_large", "ValueError", message)
        limit = self._limits["memory"]
        if self.outcome is None and limit and tool.resident_bytes() > limit:
            message = "the tool's processes used more memory than its limit"
            self.outcome = failure("memory", "MemoryError", message)
        if self.outcome is None:
            self._look_at_child()
        if self.outcome is None and self._deadline is not None and time.monotonic() >= self._deadline:
            self.outcome = failure("timeout", "TimeoutError", f"no result after {self._limits['seconds']:g} s")

    def finish(self) -> Outcome:
        """Returns the answer, once no process of the call is left."""
        self._output.drain()
        self._output.close()
        self._feed.close()
        for descriptor in (self._process.outcome, self._watched):
            if descriptor is not None:
                os.close(descriptor)
        return (self.outcome or {}) | {"truncated": self._output.truncated}

    def _read_outcome(self) -> None:
        """Takes what there is."""
        pipe = self._process.outcome
        while pipe is not None and self.outcome is None:
            try:
                chunk = os.read(pipe, 1 << 18)
            except BlockingIOError:
                return
            if not chunk:
                os.close(pipe)
                self._process.outcome = None
                return
            self._left += chunk
            self._judge_outcome()

    def _judge_outcome(self) -> None:
        if len(self._left) < 4:
            return
        size = int.from_bytes(self._left[:4], "big")
        # Three times, for JSON text in JSON and for edits; only a tool that writes here by itself is over it.
        if size > 3 * self._limits["result"] + 65536:
            self.outcome = failure("output_too_large", "ValueError", "the result is over its limit")
        elif len(self._left) >= 4 + size:
            self.outcome = check(bytes(self._left[4 : 4 + size]))

    def _look_at_child(self) -> None:
        pid, status = os.waitpid(self._process.child, os.WNOHANG)
        if not pid:
            return
        self._read_outcome()
        if self.outcome is not None:
            return
        code = os.waitstatus_to_exitcode(status)
        if self._is_program and code == 0:
            self.outcome = {"reason": "ok", "result": "null"}
        elif tool.memory_kills() > self._kills:
            self.outcome = failure("memory", "MemoryError", "the tool used more memory than its limit")
        else:
            how = f"by signal {_name(-code)}" if code < 0 else f"with exit code {code}"
            who, lacking = ("the program", "") if self._is_program else ("the tool's process", " without a result")
            self.outcome = failure("killed", "ProcessEnded", f"{who} ended {how}{lacking}")


class InputFeed:
    """The input of a process, written as it takes it. `wire`: where to say how much it took."""

    def __init__(self, pipe: int | None, wire: Wire | None) -> None:
        self._pipe = pipe
        self._wire = wire
        self._pending = bytearray()
        self._ended = False

    def add(self, data: bytes) -> None:
        """Adds data; b"": there is no more."""
        self._pending += data
        self._ended |= not data
        if self._ended and not self._pending:
            self.close()

    def doors(self) -> Iterator[Door]:
        """See `relay.Relay.doors`."""
        if self._pipe is not None and self._pending:
            yield self._pipe, select.POLLOUT, lambda _: self._write()

    def close(self) -> None:
        """Gives it up. Idempotent."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            os.close(pipe)

    def _write(self) -> None:
        assert self._pipe is not None
        try:
            taken = os.write(self._pipe, memoryview(self._pending)[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:  # it no longer reads: that is its affair
            taken = len(self._pending)
            self.close()
        del self._pending[:taken]
        if self._wire:
            self._wire.send(WINDOW, _STDIN, taken.to_bytes(4, "big"))
        if self._ended and not self._pending:
            self.close()


def _begin(
    job: dict[str, Any], names: dict[str, str], warm: ToolProcess | None, *, language: str, memory: int
) -> ToolProcess:
    if job["mode"] == "process":
        if warm:
            warm.discard()
        return start_program(job["argv"], names, job["limits"])
    if language == "node":
        return warm or start_node(names, memory)
    return start_python(job, names)


def _pidfd(child: int) -> int | None:
    """Becomes readable when the process ended; None where the kernel has no such thing."""
    try:
        return os.pidfd_open(child)
    except OSError:
        return None


def _name(number: int) -> str:
    return signal.Signals(number).name if number in signal.valid_signals() and number < 32 else str(number)
