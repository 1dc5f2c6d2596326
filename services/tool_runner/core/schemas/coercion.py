"""Arguments as weak models send them, made what the schema says where only one thing can be meant. Pure.

    "3", 3.0 for an integer; "2.5" for a number; "true" for a boolean; "null" for null
    3 for a string
    a text of JSON for an object or a list, whole or in part

What fits as it is stays. Of a union, whatever exactly one kind can take. All else is left for the check to refuse:
"three", "1,2" for a list, a lone value for a list, a text of a number for `number | string`.
"""

import json
import re
from typing import Any

from services.tool_runner.core.schemas.constraints import Schema

_WHOLE = re.compile(r"[+-]?\d{1,18}(?:\.0+)?")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?")
_WORDS = {"true": True, "false": False}
_MOST_TEXT = 1024 * 1024
_DEEPEST = 40
_MOST_STEPS = 50_000
_KINDS = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}
_COMBINATORS = ("anyOf", "oneOf")


class _Nothing:
    """No value."""


_NOTHING = _Nothing()


def coerce(parameters: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments with what their schema says of them; what it says nothing of is as it came."""
    coerced = _Coercion(parameters).value(parameters, arguments, 0)
    return coerced if isinstance(coerced, dict) else arguments


class _Coercion:
    """Coerces by one schema, within a bound: a schema may be made to take for ever."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = _MOST_STEPS

    def value(self, schema: Any, value: Any, depth: int) -> Any:
        """Returns the value as the schema wants it."""
        self._left -= 1
        schema = self._resolved(schema)
        if not isinstance(schema, dict) or depth > _DEEPEST or self._left < 0:
            return value
        for word in _COMBINATORS:
            if isinstance(options := schema.get(word), list):
                value = self._one_of(options, value, depth)
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return self._one_of([{**schema, "type": kind} for kind in kinds], value, depth)
        if not isinstance(kinds, str):
            return _of_values(schema, value)
        if not _is_kind(kinds, value):
            changed = _as_kind(kinds, value)
            if isinstance(changed, _Nothing):
                return value
            value = changed
        elif kinds == "integer" and isinstance(value, float):
            value = int(value)
        return self._inside(schema, value, depth)

    def _resolved(self, schema: Any) -> Any:
        """Returns what a reference within the schema means."""
        for _ in range(_DEEPEST):
            name = schema.get("$ref") if isinstance(schema, dict) else None
            if not isinstance(name, str) or not name.startswith("#/"):
                break
            schema = self._root
            for part in name[2:].split("/"):
                schema = schema.get(part) if isinstance(schema, dict) else None
        return schema

    def _inside(self, schema: Schema, value: Any, depth: int) -> Any:
        """Returns an object or a list with its parts coerced."""
        if isinstance(value, dict):
            known = schema.get("properties")
            known = known if isinstance(known, dict) else {}
            others = schema.get("additionalProperties")
            return {name: self.value(known.get(name, others), part, depth + 1) for name, part in value.items()}
        if isinstance(value, list):
            return [self.value(schema.get("items"), part, depth + 1) for part in value]
        return value

    def _one_of(self, options: list[Any], value: Any, depth: int) -> Any:
        """Returns the value as the one option that can take it; as it came where it fits one, or several could."""
        fitting = [option for option in options if self._fits(option, value)]
        if fitting:
            return self.value(fitting[0], value, depth + 1) if len(fitting) == 1 else value
        changed: list[Any] = []
        for option in options:
            each = self.value(option, value, depth + 1)
            if self._fits(option, each) and not any(_same(each, one) for one in changed):
                changed.append(each)
        return changed[0] if len(changed) == 1 else value

    def _fits(self, option: Any, value: Any) -> bool:
        """Returns whether the value is of the option's kind, as far as that is said."""
        self._left -= 1
        option = self._resolved(option)
        if not isinstance(option, dict) or self._left < 0:
            return True
        for word in _COMBINATORS:
            if isinstance(inner := option.get(word), list):
                return any(self._fits(each, value) for each in inner)
        if isinstance(values := option.get("enum"), list):
            return any(_same(each, value) for each in values)
        if "const" in option:
            return _same(option["const"], value)
        kinds = option.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return not isinstance(kinds, list) or any(isinstance(kind, str) and _is_kind(kind, value) for kind in kinds)


def _of_values(schema: Schema, value: Any) -> Any:
    """Returns the one of the listed values that a text or a number writes, where the schema says no more."""
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    if any(_same(each, value) for each in values) or isinstance(value, dict | list):
        return value
    written = [each for each in values if not isinstance(each, str) and json.dumps(each) == value]
    return written[0] if len(written) == 1 else value


def _is_kind(kind: str, value: Any) -> bool:
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return kind == "number" or isinstance(value, int) or value.is_integer()
    return isinstance(value, _KINDS.get(kind, object))


def _as_kind(kind: str, value: Any) -> Any:
    """Returns the value as one of the kind; _NOTHING where that would be a guess."""
    if kind == "string":
        # Not 1.10, which was "1.1" or "1.10", nor true, which some write "True".
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else _NOTHING
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        return _NOTHING
    text = value.strip()
    match kind:
        case "integer" if _WHOLE.fullmatch(text):
            return int(text.partition(".")[0])
        case "number" if _WHOLE.fullmatch(text) and "." not in text:
            return int(text)
        case "number" if _NUMBER.fullmatch(text):
            return float(text)
        case "boolean":
            return _WORDS.get(text.lower(), _NOTHING)
        case "null" if text.lower() == "null":
            return None
        case "object" if text.startswith("{"):
            return _parsed(text, dict)
        case "array" if text.startswith("["):
            return _parsed(text, list)
    return _NOTHING


def _parsed(text: str, kind: type) -> Any:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NOTHING
    return value if isinstance(value, kind) else _NOTHING


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)
