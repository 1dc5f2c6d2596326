"""The case of a conditional tool rule that a return falls under. Pure.

Source: the reference API; a return there is JSON {status, message, time}, and `message` is what is looked at.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

import orjson


def match_case(mapping: Mapping[str, str], returned: str) -> str | None:
    """Returns what the mapping has for this return: under the key that equals it, else under the first key that is the
    same truth value or number ("true" for "True", "1" for "1.0"); None where there is none.
    """
    text = _message(returned)
    if text in mapping:
        return mapping[text]
    for reading in (_truth, _number):
        if (value := reading(text)) is not None:
            return next((found for key, found in mapping.items() if reading(key) == value), None)
    return None


def _message(returned: str) -> str:
    """Returns the `message` of a return that is a JSON object with one, else the return itself."""
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


def _number(text: str) -> Decimal | None:
    """Returns the exact number, so that two long ids are never the same."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None
