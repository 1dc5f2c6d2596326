"""A value that fits a JSON Schema, for calls and replies that are demanded without the rules knowing what for. Pure."""

from collections.abc import Mapping
from typing import Any

# Schemas may refer to themselves: below this depth everything optional is left out.
_DEEPEST = 4
_GIVEN = ("const", "default")
_CHOICES = ("anyOf", "oneOf")
_FORMATS = {
    "date-time": "2026-01-01T00:00:00Z",
    "date": "2026-01-01",
    "time": "00:00:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "hostname": "example.com",
    "uri": "https://example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def sample(schema: Mapping[str, Any], text: str) -> Any:
    """A value of the schema: its default or first choice where it has one, `text` for strings, else the least.

    An object gets the properties it requires, or all where it requires none.
    """
    return _value(schema, text, schema, 0)


def _value(schema: Any, text: str, root: Mapping[str, Any], depth: int) -> Any:
    if not isinstance(schema, Mapping):
        return text
    schema = _resolve(schema, root)
    for key in _GIVEN:
        if key in schema:
            return schema[key]
    for key in ("enum", "examples"):
        if schema.get(key):
            return schema[key][0]
    for key in _CHOICES:
        if options := schema.get(key):
            return _value(next((o for o in options if o.get("type") != "null"), options[0]), text, root, depth + 1)
    return _by_type(schema, text, root, depth)


def _resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its reference followed and its `allOf` merged."""
    for _ in range(_DEEPEST):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target: Any = root
        for step in reference[2:].split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        schema = {**{name: value for name, value in schema.items() if name != "$ref"}, **target}
    merged = dict(schema)
    for part in schema.get("allOf") or ():
        resolved = _resolve(part, root)
        properties = {**merged.get("properties", {}), **resolved.get("properties", {})}
        required = [*merged.get("required", ()), *resolved.get("required", ())]
        merged |= {**resolved, "properties": properties, "required": required}
    return merged


def _by_type(schema: Mapping[str, Any], text: str, root: Mapping[str, Any], depth: int) -> Any:
    match _type_of(schema):
        case "object":
            return _object(schema, text, root, depth)
        case "array":
            count = schema.get("minItems", 0 if depth else 1)
            return [_value(schema.get("items"), text, root, depth + 1) for _ in range(count)]
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return _string(schema, text)


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else str(kind)


def _object(schema: Mapping[str, Any], text: str, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = schema.get("required") or (properties if depth < _DEEPEST else ())
    return {name: _value(properties.get(name), text, root, depth + 1) for name in required}


def _number(schema: Mapping[str, Any]) -> Any:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + 1
    value = 1 if low is None else max(1, low)
    return value if high is None else min(value, high)


def _string(schema: Mapping[str, Any], text: str) -> str:
    value = _FORMATS.get(schema.get("format", ""), text)
    value = value.ljust(schema.get("minLength", 0), ".")
    return value[: schema["maxLength"]] if "maxLength" in schema else value
