"""One call as it is heard: its output, its files, at last its answer. Pure."""

import codecs
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from services.common.core.json_text import well_formed_json
from services.tool_runner.core.job import MIB, ExitReason, File, Job, Limits, Mode, Output, Result, ToolError
from services.tool_runner.core.storable import storable
from services.tool_runner.sandboxes.protocol.connections import BadWorker
from services.tool_runner.sandboxes.protocol.events import Event, Written
from services.tool_runner.sandboxes.protocol.wire import NONCE_BYTES

_STREAMS: dict[int, Literal["stdout", "stderr"]] = {1: "stdout", 2: "stderr"}
NAME_CHARS = 255


class CallAnswer:
    """The answer of one call so far."""

    def __init__(self, job: Job, nonce: bytes) -> None:
        self.is_program = job.mode is Mode.PROCESS
        self.longest_answer = _longest_answer(job.limits)
        self._nonce = nonce
        self._limits = job.limits
        self._sequence = self._heard = 0
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {stream: decoder("replace") for stream in _STREAMS}
        self._sizes = dict.fromkeys(_STREAMS, 0)
        self._texts: dict[int, list[str]] = {stream: [] for stream in _STREAMS}
        self._files: dict[str, bytearray] = {}
        self._file: bytearray | None = None
        self._files_left, self._bytes_left = job.limits.files, job.limits.file_bytes

    def take_output(self, body: bytes) -> Iterator[Event]:
        """Takes OUTPUT; raises BadWorker."""
        self._heard += 1
        stream, data = body[4] if len(body) > 4 else 0, body[5:]
        if stream not in _STREAMS or int.from_bytes(body[:4], "big") != self._heard % 2**32:
            raise BadWorker("the sandbox sent output of no stream, or out of order")
        if self.is_program and stream == 1:
            yield Written(data)
            return
        self._sizes[stream] += len(data)
        if self._sizes[stream] > self._limits.capture and not self.is_program:
            raise BadWorker("the sandbox sent more output than was asked for")
        yield from self._text(stream, self._decoders[stream].decode(data))

    def rest(self) -> Iterator[Event]:
        """Yields what the decoders still hold of characters that never became whole."""
        for stream, decoder in self._decoders.items():
            yield from self._text(stream, decoder.decode(b"", final=True))

    def _text(self, stream: int, text: str) -> Iterator[Output]:
        if text:
            text = str(storable(text))
            self._sequence += 1
            if not self.is_program:
                self._texts[stream].append(text)
            yield Output(self._sequence, _STREAMS[stream], text)

    def begin_file(self, body: bytes) -> None:
        """Takes FILE; raises BadWorker."""
        try:
            name = body.decode()
        except UnicodeDecodeError:
            raise BadWorker("the sandbox sent a file with a garbled name") from None
        self._files_left -= 1
        if not is_file_name(name) or name in self._files or self._files_left < 0 or self.is_program:
            raise BadWorker("the sandbox sent a file that it was not to send")
        self._file = self._files[name] = bytearray()

    def add_to_file(self, body: bytes) -> None:
        """Takes DATA; raises BadWorker."""
        self._bytes_left -= len(body)
        if self._file is None or self._bytes_left < 0:
            raise BadWorker("the sandbox sent more of files than it was to send")
        self._file += body

    def so_far(self, reason: ExitReason) -> Result:
        """Returns what was printed until now."""
        stdout, stderr = ("".join(self._texts[stream]) for stream in _STREAMS)
        return Result(reason, stdout=stdout, stderr=stderr)

    def answer(self, body: bytes) -> Result:
        """Takes ANSWER; raises BadWorker."""
        if body[:NONCE_BYTES] != self._nonce:
            raise BadWorker("the sandbox answered without the nonce of its job")
        files = tuple(File(name, bytes(content)) for name, content in self._files.items())
        result = _parse(body[NONCE_BYTES:])
        printed = self.so_far(result.reason)
        return replace(result, stdout=printed.stdout, stderr=printed.stderr, files=files)


def is_file_name(name: str) -> bool:
    """Returns whether it is a relative path of 1 to 255 characters without `..`, control characters, backslashes."""
    if not 0 < len(name) <= NAME_CHARS or not name.isprintable() or "\\" in name:
        return False
    return not {"", ".", ".."} & set(name.split("/"))


def _longest_answer(limits: Limits) -> int:
    """Returns the limit: JSON writes a control character in six bytes, and the result is JSON in JSON."""
    return 12 * limits.result + MIB


def _parse(body: bytes) -> Result:
    """Returns the answer's JSON as a Result; raises BadWorker."""
    try:
        fields = json.loads(body)
        reason = ExitReason(fields["reason"])
        dropped = int(fields["files_dropped"])
        common = Result(reason, truncated=bool(fields["truncated"]), files_dropped=max(0, min(dropped, 2**31 - 1)))
        if reason is ExitReason.OK and not _is_json(fields["result"]):
            error = ToolError("ValueError", "the tool's result is not JSON, or too deeply nested")
            return replace(common, reason=ExitReason.BAD_RESULT, error=error)
        if reason is ExitReason.OK:
            edits = tuple((_text(label), _text(value)) for label, value in fields.get("edits") or ())
            return replace(common, result=well_formed_json(_text(fields["result"])), block_edits=edits)
        error = ToolError(**{name: _text(fields["error"][name]) for name in ("type", "message", "traceback")})
        return replace(common, error=error)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as problem:
        raise BadWorker(f"the sandbox's answer has not the expected shape ({type(problem).__name__})") from problem


def _is_json(text: Any) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(type(value).__name__)
    return str(storable(value))


def died_result(reason: ExitReason, message: str, of: Result | None = None) -> Result:
    """Returns the result of a call whose sandbox ended without an answer; what was printed is kept from `of`."""
    kind = {ExitReason.MEMORY: "MemoryError", ExitReason.TIMEOUT: "TimeoutError"}.get(reason, "SandboxEnded")
    return replace(of or Result(reason=reason), reason=reason, result=None, error=ToolError(type=kind, message=message))
