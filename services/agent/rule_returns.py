"""Which case of a conditional tool rule a return falls under. Pure.

Source: the reference API; a return there is JSON {status, message, time}, and `message` is what is looked at.
"""

from collections.abc import Mapping
from math import isfinite

import orjson


def matched(mapping: Mapping[str, str], returned: str) -> str | None:
    """What the mapping has for this return: under the key that equals it, else under the first key that is the same
    truth value, integer or number ("true" for "True", "1" for "1.0"); None where there is none."""
    text = _message(returned)
    if text in mapping:
        return mapping[text]
    for reading in (_truth, _integer, _real):
        value = reading(text)
        for key, found in mapping.items():
            if value is not None and reading(key) == value:
                return found
    return None


def _message(returned: str) -> str:
    """The `message` of a return that is a JSON object with one, else the return itself."""
    if not returned.lstrip().startswith("{"):
        return returned
    try:
        value = orjson.loads(returned)
    except orjson.JSONDecodeError:
        return returned
    if not isinstance(value, dict) or "message" not in value:
        return returned
    message = value["message"]
    return message if isinstance(message, str) else orjson.dumps(message).decode()


def _truth(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _real(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
