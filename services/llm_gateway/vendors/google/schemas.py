"""JSON Schemas in the subset that Google takes, for arguments of functions and for replies. Pure.

Keywords that it does not know are refused there or have no effect, so they are left out here: patterns, lengths,
defaults. A keyword with a near equivalent is said by that: `const` by `enum`, an exclusive bound by an inclusive one,
`allOf` by one schema.

Source of the subset: ai.google.dev/api/generate-content (responseJsonSchema), read in November 2026.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

_PLAIN = frozenset(
    {"title", "description", "type", "minimum", "maximum", "minItems", "maxItems", "required", "propertyOrdering"}
    | {"$id", "$anchor"}
)
_LISTS = ("anyOf", "oneOf", "prefixItems")
_FORMATS = frozenset({"date-time", "date", "time", "float", "double", "int32", "int64"})
_OLD_DEFINITIONS, _DEFINITIONS = "#/definitions/", "#/$defs/"


@lru_cache(maxsize=2_048)
def clean_schema_json(parameters_json: str) -> str:
    """Returns the schema of a function's arguments in that subset; empty where it has none."""
    try:
        schema = clean_schema(orjson.loads(parameters_json))
    except orjson.JSONDecodeError:
        return ""
    has_any = schema.get("properties") or schema.keys() & {"$ref", "anyOf", "oneOf"}
    return orjson.dumps(schema).decode() if has_any else ""


def clean_schema(schema: Any) -> dict[str, Any]:
    """Returns the schema in that subset; one that allows anything is {}."""
    if not isinstance(schema, Mapping):
        return {}
    schema = _merge(schema)
    definitions = _clean_named({**(schema.get("definitions") or {}), **(schema.get("$defs") or {})})
    result: dict[str, Any] = {"$defs": definitions} if definitions else {}
    if isinstance(target := schema.get("$ref"), str):
        # Nothing but such names may stand beside a reference.
        return {**result, "$ref": target.replace(_OLD_DEFINITIONS, _DEFINITIONS)}
    result |= {name: value for name, value in schema.items() if name in _PLAIN}
    result |= _values(schema) | _bounds(schema)
    if schema.get("format") in _FORMATS:
        result["format"] = schema["format"]
    return result | _children(schema)


def _children(schema: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if isinstance(properties := schema.get("properties"), Mapping):
        result["properties"] = _clean_named(properties)
    if isinstance(items := schema.get("items"), Mapping):
        result["items"] = clean_schema(items)
    for name in _LISTS:
        if isinstance(choices := schema.get(name), list):
            result[name] = [clean_schema(choice) for choice in choices]
    others = schema.get("additionalProperties")
    if isinstance(others, bool):
        result["additionalProperties"] = others
    elif isinstance(others, Mapping):
        result["additionalProperties"] = clean_schema(others)
    return result


def _clean_named(schemas: Mapping[str, Any]) -> dict[str, Any]:
    return {name: clean_schema(value) for name, value in schemas.items()}


def _values(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The values there are, which may be texts and numbers only."""
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not isinstance(values, list) or not values:
        return {}
    if all(isinstance(value, str) for value in values):
        return {"enum": values, "type": schema.get("type", "string")}
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return {"enum": values, "type": schema.get("type", "number")}
    return {}


def _bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    step, result = (1 if schema.get("type") == "integer" else 0), {}
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    # Draft 4 says true here, of the bound beside it.
    if isinstance(above, int | float) and above is not True and "minimum" not in schema:
        result["minimum"] = above + step
    if isinstance(below, int | float) and below is not True and "maximum" not in schema:
        result["maximum"] = below - step
    return result


def _merge(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """`allOf` as one schema of all that it lists: later ones win, properties and required ones are joined."""
    every = schema.get("allOf")
    if not isinstance(every, list):
        return schema
    result: dict[str, Any] = {}
    own = {name: value for name, value in schema.items() if name != "allOf"}
    for part in (*every, own):
        if not isinstance(part, Mapping):
            continue
        one = _merge(part)
        properties = {**result.get("properties", {}), **(one.get("properties") or {})}
        required = [*dict.fromkeys((*result.get("required", ()), *(one.get("required") or ())))]
        result |= one
        result |= ({"properties": properties} if properties else {}) | ({"required": required} if required else {})
    return result
