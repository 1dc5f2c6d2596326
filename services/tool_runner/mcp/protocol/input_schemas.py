"""Input schemas as servers write them, made JSON Schema 2020-12 that Python can read. Pure.

What other drafts and programs mean is told by `schema_forms`. Servers have JavaScript's regular expressions, too: a
pattern that Python has no words for is left out. The server checks arguments itself.
"""

import re
import warnings
from typing import Any

from services.common.core.schema_forms import as_meant

JsonObject = dict[str, Any]

# JavaScript's names of groups, which Python writes otherwise.
_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")
# Members that hold schemas by name: their own members are no keywords.
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"default", "const", "enum", "examples"})


def modern(schema: Any) -> Any:
    """Returns an inputSchema in today's words; what is no object is returned as it is, and null as one."""
    meant = {} if schema is None else as_meant(schema)
    if not isinstance(meant, dict):
        return meant
    kind = meant.get("type")
    top = {**meant, "type": "object"} if kind is None or kind == ["object"] else meant
    return _schema({name: value for name, value in top.items() if name != "$schema"})


def _schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_schema(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return _pattern({name: _member(name, value) for name, value in schema.items()})


def _member(name: str, value: Any) -> Any:
    if name in _VALUES:
        return value
    if name in _BY_NAME and isinstance(value, dict):
        return {key: _schema(part) for key, part in value.items()}
    return _schema(value)


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
