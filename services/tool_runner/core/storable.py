"""JSON that Postgres, protobuf and every client take: no NUL, no half of a character, no number that is none. Pure."""

import json
from typing import Any

from services.common.core.json_text import well_formed

# What JSON text has where a value may need it: halves of characters, and what Python writes for numbers that are none.
_SIGNS = ("\\ud", "\\uD", "NaN", "Infinity")


def storable(value: Any) -> Any:
    """Returns JSON data with its texts, names included, made storable; a number that is none becomes its name."""
    match value:
        case str():
            return _storable_text(value)
        case float() if value - value != 0:
            return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {_storable_text(name): storable(part) for name, part in value.items()}
        case list():
            return [storable(part) for part in value]
    return value


def storable_json(text: str) -> str:
    """Returns JSON text that is storable and valid; byte for byte the same where it was."""
    if any(sign in text for sign in _SIGNS):
        value = json.loads(text)
        changed = storable(value)
        text = text if changed == value else json.dumps(changed, ensure_ascii=False)
    return _storable_text(text)


def _storable_text(text: str) -> str:
    return well_formed(text.replace("\x00", "\ufffd"))
