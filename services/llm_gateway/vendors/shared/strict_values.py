"""Values of the strict form of a schema, as values of the schema itself. Pure.

There every optional property may be null (schemas.py), and null where the schema does not take it is a property left
out. Where it takes both, null is what is understood.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from services.llm_gateway.vendors.shared.schemas import parse_schema, unwrap

# References that lead to references.
_MOST_REFERENCES = 10


def restore_json(arguments_json: str, parameters_json: str) -> str:
    """Returns arguments for the strict form as arguments for the schema itself; text that is no object stays as
    it is.
    """
    try:
        value = orjson.loads(arguments_json)
    except orjson.JSONDecodeError:
        return arguments_json
    root = parse_schema(parameters_json)
    result = restore(value, root, root)
    return arguments_json if result == value else orjson.dumps(result).decode()


def restore(value: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """Returns the value without the nulls that stand for optional properties left out."""
    schema = _resolve(schema, root)
    if isinstance(value, list):
        items = next((one["items"] for one in (schema, *_alternatives(schema, root)) if "items" in one), None)
        return [restore(item, items, root) for item in value]
    if not isinstance(value, dict):
        return value
    schema = _branch(schema, value, root)
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return {
        name: restore(item, properties.get(name), root)
        for name, item in value.items()
        if item is not None or name in required or name not in properties or _takes_null(properties[name], root)
    }


def _resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    schema = unwrap(schema)
    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        target: Any = root
        for name in str(schema["$ref"]).removeprefix("#").split("/")[1:]:
            target = target.get(name, {}) if isinstance(target, Mapping) else {}
        schema = unwrap(target)
    return schema if isinstance(schema, Mapping) else {}


def _branch(schema: Mapping[str, Any], value: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the first of several schemas whose properties are those of the value."""
    choices = _alternatives(schema, root)
    return next((choice for choice in choices if (choice.get("properties") or {}).keys() == value.keys()), schema)


def _alternatives(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for choice in schema.get("anyOf") or schema.get("oneOf") or ():
        resolved = _resolve(choice, root)
        yield resolved
        yield from _alternatives(resolved, root)


def _takes_null(schema: Any, root: Mapping[str, Any]) -> bool:
    schema = _resolve(schema, root)
    if schema.get("nullable") is True or None in schema.get("enum", ()) or schema.get("const", "") is None:
        return True
    if any(_takes_null(choice, root) for choice in schema.get("anyOf") or schema.get("oneOf") or ()):
        return True
    kind = schema.get("type")
    return kind == "null" or (isinstance(kind, list) and "null" in kind)
