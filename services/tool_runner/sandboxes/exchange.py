"""The runner's side of the conversation with `worker.py`: makes job frames, reads answers. Pure.

Whatever a sandbox sends is hostile: an answer counts only if it follows the hello, carries the nonce of its
job, is within its size and has the expected shape. One answer is read and nothing after it.
"""

import json
import secrets
from dataclasses import replace
from typing import Any

from services.tool_runner.job import MIB, ExitReason, Job, Limits, Result, ToolError
from services.tool_runner.texts import storable

HELLO = b"LOCI-WORKER 1\n"
_NONCE_BYTES = 32


class BadWorker(ValueError):
    """What came is not the worker's protocol."""


class AnswerReader:
    """Takes the bytes of one worker as they come: `ready` turns true, then, for one job, `result` is set."""

    def __init__(self) -> None:
        self.ready = False
        self.result: Result | None = None
        self._nonce = b""
        self._limit = 0
        self._buffer = bytearray()

    def expect(self, job: Job, *, memory: int = 0, processes: int = 0) -> bytes:
        """The frame that gives `job` to the worker; `memory` and `processes` where it is to count them."""
        nonce = secrets.token_hex(_NONCE_BYTES // 2)
        self._nonce = nonce.encode()
        self._limit = _longest_answer(job.limits)
        body = json.dumps({**_job_fields(job, memory, processes), "nonce": nonce}).encode()
        return len(body).to_bytes(4, "big") + body

    def feed(self, chunk: bytes) -> None:
        """Take what was read; raises BadWorker, after which this worker is to be killed."""
        self._buffer += chunk
        if not self.ready:
            if not HELLO.startswith(self._buffer[: len(HELLO)]):
                began = bytes(self._buffer[:40])
                raise BadWorker(
                    f"the sandbox began with {began!r}, not {HELLO!r}: its image is of another release; "
                    "run make sandbox-image"
                )
            if len(self._buffer) < len(HELLO):
                return
            del self._buffer[: len(HELLO)]
            self.ready = True
        if self.result is None:
            self._read_answer()

    def _read_answer(self) -> None:
        start = _NONCE_BYTES + 4
        if self._buffer and not self._nonce:
            raise BadWorker("the sandbox answered before it had a job")
        if len(self._buffer) < start:
            return
        if bytes(self._buffer[:_NONCE_BYTES]) != self._nonce:
            raise BadWorker("the sandbox answered without the nonce of its job")
        size = int.from_bytes(self._buffer[_NONCE_BYTES:start], "big")
        if size > self._limit:
            raise BadWorker(f"the sandbox announced an answer of {size} bytes; at most {self._limit}")
        if len(self._buffer) >= start + size:
            self.result = parse_answer(bytes(self._buffer[start : start + size]))


def _job_fields(job: Job, memory: int, processes: int) -> dict[str, Any]:
    limits = job.limits
    return {
        "source": job.source,
        "function": job.function,
        "arguments": dict(job.arguments),
        "environment": dict(job.environment),
        "limits": {
            "seconds": limits.seconds,
            "capture_bytes": limits.capture,
            "flood_bytes": limits.flood,
            "result_bytes": limits.result,
            "file_bytes": limits.disk,
            "memory_bytes": memory,
            "processes": processes,
        },
    }


def _longest_answer(limits: Limits) -> int:
    """JSON writes a control character in six bytes; the result, JSON text in JSON, about doubles."""
    return 6 * (2 * limits.capture + limits.result) + MIB


def parse_answer(body: bytes) -> Result:
    """The worker's answer as a Result; raises BadWorker."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise BadWorker("the sandbox's answer is not JSON") from problem
    return result_from_fields(fields)


def result_from_fields(fields: Any) -> Result:
    """A Result from JSON data of the shape that `result_to_fields` writes; raises BadWorker."""
    try:
        reason = ExitReason(fields["reason"])
        error = None if reason is ExitReason.OK else ToolError(**{k: _text(v) for k, v in fields["error"].items()})
        return Result(
            reason=reason,
            result=_text(fields["result"]) if reason is ExitReason.OK else None,
            error=error,
            stdout=_text(fields["stdout"]),
            stderr=_text(fields["stderr"]),
            truncated=bool(fields["truncated"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise BadWorker(f"the sandbox's answer has not the expected shape ({type(problem).__name__})") from problem


def _text(value: Any) -> str:
    return str(storable(str(value)))


def died(reason: ExitReason, message: str, of: Result | None = None) -> Result:
    """The result of a call whose sandbox ended without an answer; what was printed is kept from `of`."""
    kind = {ExitReason.MEMORY: "MemoryError", ExitReason.TIMEOUT: "TimeoutError"}.get(reason, "SandboxEnded")
    return replace(of or Result(reason=reason), reason=reason, result=None, error=ToolError(type=kind, message=message))


def result_to_fields(result: Result) -> dict[str, Any]:
    """A Result as JSON data, in the shape of the worker's answer."""
    error = result.error
    return {
        "reason": result.reason.value,
        "result": result.result,
        "error": error and {"type": error.type, "message": error.message, "traceback": error.traceback},
        "stdout": result.stdout,
        "stderr": result.stderr,
        "truncated": result.truncated,
    }
