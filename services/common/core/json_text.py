"""JSON and texts as programs send them, read as widely as they can be. Pure.

JavaScript cuts texts between the two halves of a surrogate pair and writes the halves as JSON; models whose tokens are
bytes leave half characters behind. A text with a lonely half cannot be written as UTF-8, so it goes into no database
and no message: a half becomes U+FFFD, as everywhere in the web (WHATWG Encoding, Infra's scalar values).
"""

import json
import re
from typing import Any

import orjson

_REPLACEMENT = "\ufffd"
_HALF = re.compile("[\ud800-\udfff]")
# An escaped half without the other, in the text of a JSON value; a backslash that is itself escaped begins no escape.
_ESCAPED = re.compile(
    r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_PAIR_CHARACTERS = 12


def well_formed(text: str) -> str:
    """Returns the text with halves that belong together as their character, and others as U+FFFD."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def well_formed_json(text: str) -> str:
    """Returns the text of a JSON value without escaped halves that are alone; the same text where it has none."""
    return _ESCAPED.sub(_whole_escape, text) if "\\u" in text else text


def _whole_escape(match: re.Match[str]) -> str:
    escape = match.group(2)
    return match.group(0) if len(escape) == _PAIR_CHARACTERS else f"{match.group(1)}\\ufffd"


def parse_json(data: bytes | str) -> Any:
    """Returns the value; its texts are well formed. Raises json.JSONDecodeError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return well_formed_value(_widely(data))


def parse_pieces(data: bytes | str) -> Any:
    """Returns the value; its texts may end or begin with half a character, for whoever joins them. Raises
    json.JSONDecodeError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _widely(data)


def _widely(data: bytes | str) -> Any:
    """Called where orjson refuses: the fault may be a half, or bytes that are no UTF-8."""
    text = data if isinstance(data, str) else _decode(data)
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError:
        raise
    except (RecursionError, ValueError) as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


def _decode(data: bytes) -> str:
    try:
        # Some write the halves themselves as UTF-8 (CESU-8).
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def well_formed_value(value: Any) -> Any:
    """Returns a JSON value with all its texts well formed."""
    match value:
        case str():
            return well_formed(value)
        case dict():
            return {well_formed(name): well_formed_value(each) for name, each in value.items()}
        case list():
            return [well_formed_value(each) for each in value]
        case _:
            return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
