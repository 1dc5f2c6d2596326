"""JSON Schemas in the subset that Claude's structured outputs take. Pure.

There every object is closed, `oneOf` is unknown, and keywords that narrow a value are refused: they are said in the
description. A schema that would mean something else has no such form: an object with free keys, a value of any type, a
reference to itself or to outside.

Source: platform.claude.com/docs/en/build-with-claude/structured-outputs, and what the `anthropic` SDK makes of schemas,
read in November 2026.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from services.llm_gateway.vendors.shared.schemas import parse_schema

# Optional properties of one request's strict schemas; more are refused.
MOST_OPTIONAL = 24
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
)
_KEPT = frozenset({"type", "title", "description", "enum", "const", "default"})
_NARROWING = frozenset(
    {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "format", "examples"}
)
_INNER = frozenset({"properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf", "$ref"})
_MARKS = frozenset({"$schema", "$id", "$comment", "$defs", "definitions"})


class _NoForm(Exception):
    """The schema cannot be said in the subset."""


@lru_cache(maxsize=2_048)
def close_schema_json(parameters_json: str) -> str | None:
    """Returns the form of a tool's schema, None where it has none."""
    form = close_schema(parse_schema(parameters_json))
    return None if form is None else orjson.dumps(form).decode()


def close_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the form of a schema, None where it has none."""
    if schema.get("type") != "object":
        return None
    try:
        form = _close(schema)
        named = {**schema.get("definitions", {}), **schema.get("$defs", {})}
        if named:
            form["$defs"] = {name: _close(value) for name, value in named.items()}
            _check_references(named)
    except (_NoForm, RecursionError):
        return None
    return form if _optional_in(form) <= MOST_OPTIONAL else None


def _close(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or schema.keys() - _KEPT - _NARROWING - _INNER - _MARKS:
        raise _NoForm
    if "$ref" in schema:
        target = str(schema["$ref"]).replace("#/definitions/", "#/$defs/")
        if not target.startswith("#/$defs/"):
            raise _NoForm
        return {"$ref": target}
    form = {name: value for name, value in schema.items() if name in _KEPT}
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            form["allOf" if name == "allOf" else "anyOf"] = [_close(choice) for choice in schema[name]]
    if not form.keys() & {"type", "enum", "const", "anyOf", "allOf"}:
        raise _NoForm
    kinds = form.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds or []
    if "object" in kinds:
        form |= _object(schema)
    if "array" in kinds:
        form["items"] = _close(schema.get("items"))
    return _describe(form, {name: value for name, value in schema.items() if name in _NARROWING})


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("additionalProperties", False) is not False:
        raise _NoForm
    form = {"properties": {name: _close(value) for name, value in (schema.get("properties") or {}).items()}}
    required = {"required": list(schema["required"])} if schema.get("required") else {}
    return {**form, **required, "additionalProperties": False}


def _describe(form: dict[str, Any], narrowing: dict[str, Any]) -> dict[str, Any]:
    if narrowing.get("format") in _FORMATS:
        form["format"] = narrowing.pop("format")
    if narrowing.get("minItems") in (0, 1):
        form["minItems"] = narrowing.pop("minItems")
    if narrowing:
        notes = ", ".join(f"{name}: {orjson.dumps(value).decode()}" for name, value in narrowing.items())
        form["description"] = " ".join(filter(None, (form.get("description", ""), f"({notes})")))
    return form


def _check_references(named: Mapping[str, Any]) -> None:
    """Raises _NoForm where a definition leads back to itself."""
    leads = {name: set(_references(value)) for name, value in named.items()}
    for name in leads:
        seen: set[str] = set()
        ahead = set(leads[name])
        while ahead:
            one = ahead.pop()
            if one == name:
                raise _NoForm
            seen.add(one)
            ahead |= leads.get(one, set()) - seen


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for item in schema for name in _references(item)]
    if not isinstance(schema, Mapping):
        return []
    own = [str(schema["$ref"]).rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
    return own + [name for value in schema.values() for name in _references(value)]


def _optional_in(schema: Any) -> int:
    if isinstance(schema, list):
        return sum(map(_optional_in, schema))
    if not isinstance(schema, Mapping):
        return 0
    properties = schema.get("properties")
    own = len(properties) - len(schema.get("required") or ()) if isinstance(properties, Mapping) else 0
    return max(0, own) + sum(map(_optional_in, schema.values()))
