"""Values as the old server's rows hold them, and ids. No I/O."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

Row = Mapping[str, Any]
Json = dict[str, Any]


class Skip(NamedTuple):
    """Why a row is not taken, for people."""

    reason: str


def decode_json(text: str) -> Any:
    """Parses JSON as Postgres keeps it, without NUL and lonely halves of characters, which cannot be stored here."""
    value = json.loads(text)
    return _storable(value) if "\\u" in text else value


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_storable(one) for one in value]
        case dict():
            return {storable(name): _storable(one) for name, one in value.items()}
        case _:
            return value


def storable(text: str) -> str:
    """Returns the text without NUL, and with U+FFFD for a lonely half of a character."""
    text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def dump(value: Any) -> str:
    """Returns JSON."""
    return json.dumps(value, ensure_ascii=False)


def as_object(value: Any) -> Json:
    """Returns a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Returns a JSON array; empty for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Returns a text; empty for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Returns a whole number; 0 for anything else."""
    return value if type(value) is int else 0


def uuid_of(old: str) -> UUID:
    """Returns the UUID behind the prefix of an old id; for an id without one, a UUID derived from it."""
    try:
        return UUID(old[-36:])
    except ValueError:
        return uuid5(NAMESPACE_URL, old)


def public_id(prefix: str, old: str) -> str:
    """Returns the id here: `public_id("source", "source-<uuid>")`."""
    return f"{prefix}-{uuid_of(old)}"
