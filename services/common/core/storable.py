"""Texts and JSON of clients, models and tools, made storable for Postgres. Pure."""

import unicodedata
from collections.abc import Mapping
from typing import Any

import orjson

from services.common.core.json_text import parse_json, well_formed


def storable(text: str) -> str:
    """Returns the text without NUL characters (as the reference) and with U+FFFD for a lonely half of a character."""
    return well_formed(text.replace("\0", ""))


def storable_name(text: str) -> str:
    """Returns a name, tag or label as it is stored and looked for: composed (NFC), as most programs write it."""
    text = storable(text)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def storable_json(value: Any) -> Any:
    """Returns the same of all names and texts in a JSON value."""
    match value:
        case str():
            return storable(value)
        case Mapping():
            return {storable(name): storable_json(each) for name, each in value.items()}
        case list() | tuple():
            return [storable_json(each) for each in value]
        case _:
            return value


def parse_storable(text: str) -> Any:
    """Returns a client's JSON as it can be stored. Raises ValueError."""
    value = parse_json(text)
    try:
        # orjson writes less deeply nested data than it reads.
        stored = orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        raise ValueError(str(error)) from None
    return storable_json(value) if b"\\u0000" in stored else value
