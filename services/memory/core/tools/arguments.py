"""The arguments of a tool call, read with a type. Pure.

Every complaint names the argument and says what is expected, for the model to read. Arguments that a tool
does not have are ignored: models add some out of habit.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from services.common.core.refusals import Refused
from services.common.core.storable import storable_json
from services.memory.core.rules import JsonObject

_KINDS = {
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "an object",
}


class Arguments:
    """A call's arguments. Every reader raises Refused where the value is missing or of the wrong kind."""

    def __init__(self, values: JsonObject) -> None:
        self._values = values

    @classmethod
    def parse(cls, text: str) -> "Arguments":
        """Parses a JSON object. Drops NUL, and replaces halves of surrogate pairs."""
        try:
            values = storable_json(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise Refused("TOOL_REFUSED", f"The arguments are not valid JSON: {str(error)[:200]}") from None
        if not isinstance(values, dict):
            raise Refused("TOOL_REFUSED", f"The arguments must be a JSON object, not {_kind(values)}.")
        return cls(values)

    def text(self, name: str) -> str:
        """Returns a string, which must be given."""
        value = self._values.get(name)
        if value is None:
            raise Refused("TOOL_REFUSED", f'The argument "{name}" is missing; it must be a string.')
        if not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value

    def optional_text(self, name: str) -> str | None:
        """Returns a string, None if not given."""
        return None if self._values.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        """Returns a boolean, false if not given; the words in a string count, too."""
        value = self._values.get(name)
        match value:
            case None:
                return False
            case bool():
                return value
            case str() if value.strip().lower() in ("true", "false"):
                return value.strip().lower() == "true"
            case _:
                raise self._wrong(name, "a boolean")

    def objects(self, name: str, key: str) -> "tuple[Arguments, ...]":
        """Returns a list of objects, which must be given; a string stands for an object with that `key` alone."""
        value = self._values.get(name)
        items = value if isinstance(value, list) else [value]
        objects: list[Any] = [{key: item} if isinstance(item, str) else item for item in items]
        if not all(isinstance(item, dict) for item in objects):
            raise self._wrong(name, f'a list of objects, each with "{key}"')
        return tuple(map(Arguments, objects))

    def integer(self, name: str, default: int) -> int:
        """Returns a whole number; digits in a string count, too."""
        value = self.optional_integer(name)
        return default if value is None else value

    def optional_integer(self, name: str) -> int | None:
        """Returns a whole number, None if not given."""
        value = self._values.get(name)
        match value:
            case None:
                return None
            case bool():
                raise self._wrong(name, "an integer")
            case int():
                return value
            case float() if value.is_integer():
                return int(value)
            case str() if value.strip().removeprefix("-").isdecimal() and len(value) < 12:
                return int(value)
            case _:
                raise self._wrong(name, "an integer")

    def texts(self, name: str) -> tuple[str, ...]:
        """Returns a list of strings, empty if not given; one string stands for a list of one."""
        value = self._values.get(name)
        if isinstance(value, str):
            return (value,)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(name, "a list of strings")
        return tuple(value)

    def choice(self, name: str, options: Sequence[str], default: str) -> str:
        """Returns one of some strings."""
        value = self._values.get(name) or default
        if value not in options:
            raise self._wrong(name, " or ".join(f'"{option}"' for option in options))
        return str(value)

    def time(self, name: str, zone: tzinfo, *, end: bool = False) -> datetime | None:
        """Returns a date or time in ISO 8601, in `zone` unless it has one; with `end`, a date is its last moment."""
        value = self._values.get(name)
        if value is None or value == "":
            return None
        try:
            moment = datetime.fromisoformat(value)
            if end and len(value.strip()) <= len("2026-01-31"):
                moment += timedelta(days=1) - timedelta(microseconds=1)
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(name, 'an ISO 8601 date or time such as "2026-01-31" or "2026-01-31T15:30:00"') from None

    def _wrong(self, name: str, expected: str) -> Refused:
        value = self._values.get(name)
        excerpt = json.dumps(value, ensure_ascii=False)[:80]
        return Refused("TOOL_REFUSED", f'The argument "{name}" must be {expected}, not {_kind(value)}: {excerpt}')


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)
