"""Rules for every tool's schema, whatever language its source is in. Pure."""

import re
from typing import Any

from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.inline import inline

MAX_SOURCE_BYTES = 256 * 1024
# What every provider takes.
MAX_NAME_CHARS = 64
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")


def check_size(source: str) -> None:
    """Raises SchemaError where there is too much of it."""
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise SchemaError("SOURCE_TOO_LARGE", f"tool source has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted")


def check_schema(schema: Schema) -> None:
    """Refuses a tool schema whose name or shape no model provider would take; raises SchemaError."""
    name = schema.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SchemaError("BAD_NAME", f"tool name {name!r} must be letters, digits, '_' or '-', not empty")
    if len(name) > MAX_NAME_CHARS:
        raise SchemaError("BAD_NAME", f"tool name {name!r} has {len(name)} characters; at most {MAX_NAME_CHARS}")
    if not isinstance(schema.get("description", ""), str):
        raise SchemaError("BAD_SCHEMA", f"the schema of {name!r} has a description that is not text")
    parameters = schema.get("parameters", {"type": "object"})
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        raise SchemaError("BAD_SCHEMA", f"'parameters' of tool {name!r} must be a JSON Schema of type object")


def check_args_schema(schema: Schema) -> Schema:
    """Returns the arguments' schema as parameters, what it defines inlined; raises SchemaError."""
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise SchemaError("BAD_SCHEMA", "args_json_schema must be a JSON Schema of type object with its properties")
    return {"properties": {}, "required": [], **inline(schema)}


def no_such_function(name: Any, defined: list[str]) -> SchemaError:
    """Returns the error for a source that has another function than the tool's name says."""
    there = ", ".join(defined) or "none"
    sentence = f"Tool name {name!r} does not match the source, whose function is: {there}. Change both together"
    return SchemaError("NAME_MISMATCH", sentence)
