"""Input schemas as servers write them, made JSON Schema 2020-12 that Python can read. Pure.

Servers have older drafts (zod-to-json-schema writes draft-07), JavaScript's regular expressions, and null for what is
absent. Their meaning stays; a pattern that Python has no words for is left out. The server checks arguments itself.
"""

import re
import warnings
from typing import Any

JsonObject = dict[str, Any]

# JavaScript's names of groups, which Python writes otherwise.
_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")
# Members that hold schemas by name: their own members are no keywords.
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"default", "const", "enum", "examples"})
_NULLABLE = ("properties", "required", "items", "description", "title", "additionalProperties")


def modern(schema: Any) -> Any:
    """Returns an inputSchema in today's words; what is no object is returned as it is, and null as one."""
    if schema is None:
        return {}
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    top = {**schema, "type": "object"} if kind is None or kind == ["object"] else schema
    return _schema({name: value for name, value in top.items() if name != "$schema"})


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if value is not None or name not in _NULLABLE}
    made = {name: _member(name, value) for name, value in _tuples(kept).items()}
    for name, other in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        _bound(made, name, other)
    return _pattern(made)


def _member(name: str, value: Any) -> Any:
    if name in _VALUES:
        return value
    if name in _BY_NAME and isinstance(value, dict):
        return {key: _schema(part) for key, part in value.items()}
    return _schema(value)


def _tuples(schema: JsonObject) -> JsonObject:
    """Returns it with prefixItems, where it has a list of schemas as its items (draft-07 and before)."""
    if not isinstance(schema.get("items"), list):
        return schema
    rest = {name: value for name, value in schema.items() if name not in ("items", "additionalItems")}
    further = {"items": schema["additionalItems"]} if "additionalItems" in schema else {}
    prefix = {"prefixItems": schema["items"]} if schema["items"] else {}
    return {**rest, **prefix, **further}


def _bound(schema: JsonObject, name: str, other: str) -> None:
    """Makes draft-04's `exclusiveMinimum: true` the number that it is about."""
    exclusive = schema.get(name)
    if isinstance(exclusive, bool):
        del schema[name]
        if exclusive and other in schema:
            schema[name] = schema.pop(other)


def _pattern(schema: JsonObject) -> JsonObject:
    if isinstance(text := schema.get("pattern"), str):
        if (readable := _readable(text)) is None:
            return {name: value for name, value in schema.items() if name != "pattern"}
        schema["pattern"] = readable
    if isinstance(by_pattern := schema.get("patternProperties"), dict):
        kept = {readable: value for text, value in by_pattern.items() if (readable := _readable(text)) is not None}
        schema["patternProperties"] = kept
    return schema


def _readable(pattern: str) -> str | None:
    """Returns the pattern as Python has it; None where it cannot."""
    named = _GROUP.sub("(?P<", pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of words that may mean something else one day
            re.compile(named)
    except (re.error, RecursionError, OverflowError):
        return None
    return named
