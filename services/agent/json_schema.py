"""The plain part of JSON Schema (draft 2020-12): what can be checked in time proportional to schema and data. Pure.

    is_checkable(schema) -> bool        whether all of it is plain and well-formed
    faults(value, schema) -> (path, what is wrong there) ...

For tools' arguments; written out because the agent process shall neither load a validator nor let a schema that
somebody sent hold its event loop, as a pattern or a reference can.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import ge, gt, le, lt
from typing import Any

Path = tuple[str | int, ...]
Fault = tuple[Path, str]
_Check = Callable[[Any, Any, Mapping[str, Any]], Iterator[Fault]]

_SHOWN_CHARS = 80
_SHOWN_OPTIONS = 20
_KINDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


def listed(wanted: Any) -> list[Any]:
    """The value of a keyword that takes one or a list of them."""
    return wanted if isinstance(wanted, list) else [wanted]


def is_checkable(schema: Any) -> bool:
    """Whether `faults` knows every keyword, and each is written as JSON Schema has it."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, Mapping):
        return False
    return all(keyword in _WELL_FORMED and _WELL_FORMED[keyword](wanted) for keyword, wanted in schema.items())


def faults(value: Any, schema: Any) -> Iterator[Fault]:
    """What is wrong with a JSON value by a checkable schema."""
    if schema is False:
        yield (), "must not be given"
    if isinstance(schema, Mapping):
        for keyword, wanted in schema.items():
            if keyword in _CHECKS:
                yield from _CHECKS[keyword](wanted, value, schema)


# Checks: (value of the keyword, value to check, schema that has the keyword) -> faults ---------------------


def _type(wanted: Any, value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    kinds = listed(wanted)
    if not any(_is_of(kind, value) for kind in kinds):
        yield (), f"must be {' or '.join(_KINDS[kind] for kind in kinds)}, not {_shown(value)}"


def _is_of(kind: str, value: Any) -> bool:
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int():
            return kind in ("integer", "number")
        case float():
            return kind == "number" or (kind == "integer" and value.is_integer())
        case str():
            return kind == "string"
        case list():
            return kind == "array"
    return kind == "object"


def _enum(options: list[Any], value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    if not any(_equal(option, value) for option in options):
        expected = ", ".join(json.dumps(option, ensure_ascii=False) for option in options[:_SHOWN_OPTIONS])
        yield (), f"must be one of {expected}, not {_shown(value)}"


def _const(option: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Fault]:
    return _enum([option], value, schema)


def _equal(one: Any, other: Any) -> bool:
    """Equal as JSON: 1 is 1.0 and is not true."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(value, other[name]) for name, value in one.items())
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _properties(properties: Mapping[str, Any], value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    if isinstance(value, dict):
        for name, schema in properties.items():
            if name in value:
                yield from _under(name, faults(value[name], schema))


def _required(names: list[str], value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    if isinstance(value, dict) and (missing := [name for name in names if name not in value]):
        yield (), f"{', '.join(missing)} must be given and is missing"


def _additional(wanted: Any, value: Any, schema: Mapping[str, Any]) -> Iterator[Fault]:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    more = [name for name in value if name not in known]
    if wanted is False and more:
        yield (), f"{', '.join(more)} must not be given; it takes {', '.join(known) or 'none'}"
    elif wanted is not False:
        for name in more:
            yield from _under(name, faults(value[name], wanted))


def _items(wanted: Any, value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _under(index, faults(item, wanted))


def _any_of(options: list[Any], value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    if not any(_fits(value, option) for option in options):
        yield _none_of(options, value)


def _one_of(options: list[Any], value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
    if sum(_fits(value, option) for option in options) != 1:
        yield _none_of(options, value)


def _fits(value: Any, schema: Any) -> bool:
    return next(faults(value, schema), None) is None


def _none_of(options: Iterable[Any], value: Any) -> Fault:
    expected = " or ".join(map(_described, list(options)[:10]))
    return (), f"must be {expected}, not {_shown(value)}"


def _described(schema: Any) -> str:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return _KINDS[kind] if isinstance(kind, str) else "another form of it"


def _limit(kind: Any, measure: Callable[[Any], Any], holds: Callable[[Any, Any], bool], words: str) -> _Check:
    def check(wanted: Any, value: Any, _: Mapping[str, Any]) -> Iterator[Fault]:
        if isinstance(value, kind) and not isinstance(value, bool) and not holds(measure(value), wanted):
            yield (), f"{words.format(wanted)}, not {_shown(measure(value))}"

    return check


def _itself(value: Any) -> Any:
    return value


def _under(step: str | int, found: Iterator[Fault]) -> Iterator[Fault]:
    return (((step, *path), text) for path, text in found)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "..."


_NUMBER = int | float
_CHECKS: dict[str, _Check] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "minimum": _limit(_NUMBER, _itself, ge, "must be at least {}"),
    "maximum": _limit(_NUMBER, _itself, le, "must be at most {}"),
    "exclusiveMinimum": _limit(_NUMBER, _itself, gt, "must be more than {}"),
    "exclusiveMaximum": _limit(_NUMBER, _itself, lt, "must be less than {}"),
    "minLength": _limit(str, len, ge, "must have at least {} characters"),
    "maxLength": _limit(str, len, le, "must have at most {} characters"),
    "minItems": _limit(list, len, ge, "must have at least {} items"),
    "maxItems": _limit(list, len, le, "must have at most {} items"),
    "minProperties": _limit(dict, len, ge, "must have at least {} fields"),
    "maxProperties": _limit(dict, len, le, "must have at most {} fields"),
}

# Well-formedness: value of the keyword -> whether JSON Schema takes it -----------------------------------------


def _is_number(wanted: Any) -> bool:
    return isinstance(wanted, int | float) and not isinstance(wanted, bool)


def _is_size(wanted: Any) -> bool:
    return _is_number(wanted) and wanted >= 0 and (isinstance(wanted, int) or wanted.is_integer())


def _are_kinds(wanted: Any) -> bool:
    kinds = listed(wanted)
    return bool(kinds) and all(isinstance(kind, str) and kind in _KINDS for kind in kinds)


def _are_names(wanted: Any) -> bool:
    return isinstance(wanted, list) and all(isinstance(name, str) for name in wanted)


def _are_properties(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and all(map(is_checkable, wanted.values()))


def _are_options(wanted: Any) -> bool:
    return isinstance(wanted, list) and bool(wanted) and all(map(is_checkable, wanted))


def _is_list(wanted: Any) -> bool:
    return isinstance(wanted, list)


def _is_anything(_: Any) -> bool:
    return True


_WELL_FORMED: dict[str, Callable[[Any], bool]] = {
    "type": _are_kinds,
    "enum": _is_list,
    "const": _is_anything,
    "properties": _are_properties,
    "required": _are_names,
    "additionalProperties": is_checkable,
    "items": is_checkable,
    "anyOf": _are_options,
    "oneOf": _are_options,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_size),
    # Said to readers only.
    **dict.fromkeys(("$schema", "$comment", "title", "description", "default", "examples", "format"), _is_anything),
    **dict.fromkeys(("deprecated", "readOnly", "writeOnly"), _is_anything),
}
