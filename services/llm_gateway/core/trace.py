"""The trace of a call: the request and the reply as JSON of a bounded size. Pure.

Bodies alone: headers, and so keys, never come here.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest
from services.llm_gateway.core.errors import LlmError

MOST_BYTES = 256 * 1024
# What an error's metadata carries of it; a longer one is left out.
MOST_BYTES_IN_ERROR = 4_096
METADATA_KEY = "provider_trace"
_CUT = "...cut"
_LONGEST_STRING = 64 * 1024
_SHORTEST_STRING = 64


class RequestPreview(Exception):
    """The end of a call with `preview`: the body that the provider would be sent."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


class Trace:
    """One call. `request` is the body that was sent; set `response`, or feed a stream's events."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.response: bytes = b""
        self.events: list[bytes] = []

    def text(self, most: int = MOST_BYTES) -> str:
        """{"request", "response"} as JSON of at most `most` bytes; the longest strings are cut where it must be."""
        came: Any = [_value(event) for event in self.events] if self.events else _value(self.response)
        return shorten({"request": _value(self._request), "response": came}, most)

    def attach_to(self, error: LlmError) -> None:
        """Puts the trace into the error's metadata, where it fits."""
        text = self.text()
        if len(text.encode()) <= MOST_BYTES_IN_ERROR:
            error.metadata[METADATA_KEY] = text


@contextmanager
def tracing(request: ChatRequest, body: bytes) -> Iterator[Trace | None]:
    """Yields the trace of a call, None where it is not wanted; an LlmError that leaves the block takes it along.

    Raises RequestPreview where the body is all that is wanted: every provider comes by here before it sends one.
    """
    if request.preview:
        raise RequestPreview(body)
    trace = Trace(body) if request.trace else None
    try:
        yield trace
    except LlmError as error:
        if trace is not None:
            trace.attach_to(error)
        raise


def shorten(value: dict[str, Any], most: int) -> str:
    """Returns the object's JSON, its strings shortened (the longest first) until it has at most `most` bytes."""
    data, longest = orjson.dumps(value), _LONGEST_STRING
    while len(data) > most and longest >= _SHORTEST_STRING:
        data = orjson.dumps(_cut_strings(value, longest))
        longest //= 2
    if len(data) > most:
        # Too many small things. What begins each half says most; a byte may become two when it is quoted.
        size = most // (4 * len(value))
        halves = {name: orjson.dumps(half)[:size].decode("utf-8", "ignore") + _CUT for name, half in value.items()}
        data = orjson.dumps(halves)
    return data.decode()


def _cut_strings(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else f"{value[:longest]}{_CUT}"
    if isinstance(value, list):
        return [_cut_strings(item, longest) for item in value]
    if isinstance(value, dict):
        return {name: _cut_strings(item, longest) for name, item in value.items()}
    return value


def _value(data: bytes) -> Any:
    """Returns the value as JSON, or else its text; None for nothing."""
    if not data:
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return data.decode("utf-8", "replace")
