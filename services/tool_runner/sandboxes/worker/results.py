"""The result of a tool, as JSON: valid in every case, and readable where JSON has no such thing.

NaN and infinities           texts: "NaN", "Infinity", "-Infinity"
generators, sets, views      their items; a set in order, where it has one
dataclasses, Pydantic's, Enums, dates, arrays    their data
bytes                        their text, or base64 where they are none
what contains itself, or is deeper than any use; other objects    a text that shows them
"""

import collections
import collections.abc
import enum
import importlib
import itertools
import json
from typing import Any

from .outcome import Outcome, failure, whole_characters

_DEEPEST = 100
_LONGEST_INTEGER_BITS = 14_000  # Python refuses to write longer ones in decimal
_ITERATED = (
    collections.abc.Iterator,
    collections.abc.KeysView,
    collections.abc.ValuesView,
    collections.abc.ItemsView,
    range,
)


def encode(value: Any, limit: int, *, or_text: bool) -> Outcome:
    """Returns the value as JSON of at most `limit` bytes; `or_text`: as its repr where it is none.

    Raises what a __str__, __repr__, model_dump or generator of the tool's own does.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (ValueError, TypeError, RecursionError):
        plain = repr(value) if or_text else _Tidy(limit).value(value, ())
        text = json.dumps(plain, ensure_ascii=False)
    if not text.isascii():
        text = whole_characters(text)
    size = len(text.encode())
    if size > limit:
        message = f"the result has {size} bytes of JSON; at most {limit} are accepted"
        return failure("output_too_large", "ValueError", message)
    return {"reason": "ok", "result": text}


class _Tidy:
    """Makes JSON data of anything. `limit` bounds how many items are taken of what may have no end."""

    def __init__(self, limit: int) -> None:
        self._most = limit // 2 + 1  # an item has a byte and a comma

    def value(self, value: Any, inside: tuple[int, ...]) -> Any:
        """Returns it as JSON data. `inside`: what it is part of, by identity."""
        match value:
            case None | bool() | str():
                return value
            case enum.Enum():
                return self.value(value.value, inside)
            case int():
                return value if value.bit_length() <= _LONGEST_INTEGER_BITS else hex(value)
            case float():
                return _number(value)
            case bytes() | bytearray() | memoryview():
                return _text_of_bytes(bytes(value))
        if id(value) in inside or len(inside) > _DEEPEST:
            return importlib.import_module("reprlib").repr(value)
        return self._container(value, (*inside, id(value)))

    def _container(self, value: Any, inside: tuple[int, ...]) -> Any:
        match value:
            case dict():
                return {self._key(name): self.value(part, inside) for name, part in value.items()}
            case list() | tuple() | collections.deque():
                return [self.value(part, inside) for part in value]
            case set() | frozenset():
                return self._set(value, inside)
        if isinstance(value, _ITERATED):
            return [self.value(part, inside) for part in itertools.islice(value, self._most)]
        return str(value) if isinstance(value, type) else self._object(value, inside)

    def _object(self, value: Any, inside: tuple[int, ...]) -> Any:
        if hasattr(value, "__dataclass_fields__"):
            return {name: self.value(getattr(value, name, None), inside) for name in value.__dataclass_fields__}
        if callable(dump := getattr(value, "model_dump", None)):
            return self.value(dump(), inside)
        if callable(iso := getattr(value, "isoformat", None)):
            return iso()
        if callable(to_list := getattr(value, "tolist", None)):  # of NumPy, pandas and the module array
            return self.value(to_list(), inside)
        if isinstance(value, collections.abc.Mapping):
            return self._container(dict(value), inside)
        kind: Any = type(value)
        if (kind.__str__, kind.__repr__) == (object.__str__, object.__repr__) and hasattr(value, "__dict__"):
            return self._container(vars(value), inside)
        return str(value)

    def _set(self, value: Any, inside: tuple[int, ...]) -> list[Any]:
        try:
            items = sorted(value)
        except TypeError:
            items = list(value)
        return [self.value(item, inside) for item in items]

    def _key(self, key: Any) -> str:
        match key:
            case str():
                return str(key.value) if isinstance(key, enum.Enum) else key
            case None | bool():
                return json.dumps(key)
        plain = self.value(key, ())
        return plain if isinstance(plain, str) else str(key if isinstance(plain, list | dict) else plain)


def _number(value: float) -> float | str:
    if value - value == 0:
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return str(importlib.import_module("base64").b64encode(value).decode())
