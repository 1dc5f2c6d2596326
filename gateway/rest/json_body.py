"""JSON bodies, parsed strictly: what Postgres or a model provider would choke on later is refused here.

orjson refuses NaN, infinities and invalid UTF-8; this refuses NUL, deep nesting, more objects and lists than anybody
needs, and names that stand twice in an object besides. Half a character, as JavaScript writes it where a text was cut,
is no reason to lose the rest: it becomes U+FFFD.
"""

import json
import re
from typing import Any

import orjson
from starlette.requests import Request

from services.common.core.json_text import well_formed_json

MAX_DEPTH = 100
# Each costs a walk in Python, and 60 bytes and more: 32 MiB of "[]" would be a gigabyte and ten seconds.
MOST_CONTAINERS = 200_000
_TWICE = "an object has the same name twice"
# To the end where it has none: what is no JSON must cost no more than what is.
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


class InvalidJson(json.JSONDecodeError):
    """JSON that is well-formed and still not accepted. FastAPI answers 422 for its base class."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "", 0)


class JsonRequest(Request):
    """A request whose body is parsed by `parse`."""

    async def json(self) -> Any:
        """Returns the parsed body. Raises json.JSONDecodeError."""
        if not hasattr(self, "_json"):
            self._json = parse(await self.body())
        return self._json


def parse(body: bytes, most_containers: int = MOST_CONTAINERS) -> Any:
    """Returns the value in `body`. Raises json.JSONDecodeError, also for NUL in a text, nesting above MAX_DEPTH, more
    than `most_containers` objects and lists, and names that stand twice in an object.
    """
    if _containers(body) > most_containers and _containers(_TEXT.sub(b"", body)) > most_containers:
        raise InvalidJson(f"more than {most_containers:,} objects and lists; send it in parts")
    body = _well_formed(body)
    value = orjson.loads(body)
    # Both counts are a scan in C; the walk in Python is for the few bodies that could be guilty.
    if b"\\u0000" in body or _containers(body) > MAX_DEPTH:
        _inspect(value)
    # Of a name that stands twice only one is left, and with the other go its quotes. Only an escaped quote has more of
    # them when it is written again.
    if b"\\u0022" in body:
        json.loads(body, object_pairs_hook=_once)
    elif body.count(b'"') > orjson.dumps(value).count(b'"'):
        raise InvalidJson(_TWICE)
    return value


def _containers(body: bytes) -> int:
    """Counts objects and lists, and brackets in texts."""
    return body.count(b"{") + body.count(b"[")


def _well_formed(body: bytes) -> bytes:
    """Returns a body that has escapes with the lonely halves among them replaced."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    try:
        return well_formed_json(body.decode()).encode()
    except UnicodeDecodeError:
        return body  # no JSON, as orjson says with the place


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise InvalidJson(_TWICE)


def _inspect(value: Any) -> None:
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise InvalidJson("a text contains a NUL character (\\u0000), which cannot be stored")
        elif isinstance(item, dict | list):
            if depth > MAX_DEPTH:
                raise InvalidJson(f"nested more than {MAX_DEPTH} levels deep")
            children = (*item.keys(), *item.values()) if isinstance(item, dict) else item
            pending.extend((child, depth + 1) for child in children)
