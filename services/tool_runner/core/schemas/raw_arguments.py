"""The arguments of a call as the model gave them, made ready to be checked. Pure.

Separate from `arguments.py`, which needs jsonschema.
"""

import json
from hashlib import sha256
from typing import Any

from services.tool_runner.core.schemas.constraints import Schema

MOST_BYTES = 1024 * 1024
# What models trained on the reference add out of habit.
HABITS = frozenset({"request_heartbeat"})
# Keywords whose check takes time in proportion to schema and data; others can be made to take for ever.
_PLAIN = frozenset(
    (
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "additionalProperties",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
        "description",
        "title",
        "default",
        "examples",
        "format",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
    )
)
_PLAIN_CHARS = 64 * 1024


class NotAnObject(ValueError):
    """The arguments are no JSON object; the text says why, for the model."""


def parse(text: str) -> dict[str, Any]:
    """Returns the arguments; "" counts as none, and a text that is an object's JSON as that. Raises NotAnObject."""
    if len(text) > MOST_BYTES:
        raise NotAnObject(f"the arguments have {len(text)} characters; at most {MOST_BYTES} are accepted")
    try:
        value = json.loads(text or "{}", parse_constant=_refuse)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = json.loads(value, parse_constant=_refuse)
    except RecursionError:
        raise NotAnObject("the arguments are too deeply nested") from None
    except ValueError as error:
        raise NotAnObject(f"the arguments are not valid JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise NotAnObject(f"the arguments must be a JSON object, not {text[:40]}")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def hash_arguments(text: str) -> str:
    """Returns the SHA-256, hexadecimal, of the arguments, whatever their key order and spaces."""
    try:
        canonical = json.dumps(parse(text), sort_keys=True, separators=(",", ":"))
    except NotAnObject:
        canonical = text
    return sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def names_of(parameters: Schema) -> list[str]:
    """Returns the names of the arguments that are the tool's own, in the schema's order."""
    return [name for name in parameters.get("properties") or {} if name not in HABITS]


def without_habits(parameters: Schema) -> Schema:
    """Returns the parameters that are the tool's own."""
    known = parameters.get("properties")
    if not isinstance(known, dict) or not HABITS & known.keys():
        return parameters
    own = {name: schema for name, schema in known.items() if name not in HABITS}
    return parameters | {"properties": own, "required": [n for n in parameters.get("required", ()) if n not in HABITS]}


def complete(parameters: Schema, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns them without null for an optional argument that is not nullable: models mean "left out" by it."""
    known, required = parameters.get("properties", {}), parameters.get("required", [])

    def dropped(name: str, value: Any) -> bool:
        if name not in known:
            return name in HABITS
        return value is None and name not in required and not _admits_null(known[name])

    return {name: value for name, value in arguments.items() if not dropped(name, value)}


def _admits_null(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    kind = schema.get("type")
    if kind is not None:
        return "null" in ([kind] if isinstance(kind, str) else kind)
    if "enum" in schema:
        return None in schema["enum"]
    if "anyOf" in schema:
        return any(_admits_null(option) for option in schema["anyOf"])
    return True


def is_plain(parameters: Schema, text: str) -> bool:
    """Returns whether these arguments can be checked here; else it is work for a limited child."""
    return len(text) <= _PLAIN_CHARS and _plain(parameters)


def _plain(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return True
    nested = [schema.get("items"), schema.get("additionalProperties")]
    nested += schema.get("properties", {}).values()
    nested += [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    return schema.keys() <= _PLAIN and all(map(_plain, nested))
