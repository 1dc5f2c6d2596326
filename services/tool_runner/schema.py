"""A tool's JSON schema from its Python source, by syntax alone: nothing is imported, evaluated or run.

Pure. The tool is the last function of the module; its name, docstring (Google style) and type hints give::

    {"name": ..., "description": ..., "parameters": {"type": "object", "properties": ..., "required": ...}}

Source: the reference API (custom tools), which derives the same from a function object; as there, a default
makes an argument optional and is not itself shown.
Hostile source can exhaust a parser: `limited.py` runs this in a limited child process.
"""

import ast
import re

from services.tool_runner.annotations import (
    SUPPORTED,
    Schema,
    UnsupportedType,
    annotation_schema,
    is_optional,
)
from services.tool_runner.docstring import Docstring, parse_docstring

MAX_SOURCE_BYTES = 256 * 1024
MAX_NAME_CHARS = 48
# Given by the runner at the call, never by the model.
HIDDEN_PARAMETERS = frozenset({"agent_state"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]*")


class SchemaError(ValueError):
    """The source gives no tool. `reason` is UPPER_SNAKE and stable; the text says what to change."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


def derive_schema(source: str, args_schema: Schema | None = None) -> Schema:
    """The schema of the tool in `source`; raises SchemaError.

    `args_schema` (a JSON Schema of type object) stands in for the type hints and argument descriptions when
    it is given; name and description still come from the function.
    """
    function = _tool_function(_parse(source))
    docstring = ast.get_docstring(function)
    if not docstring or not docstring.strip():
        raise SchemaError(
            "NO_DOCSTRING",
            f"function {function.name!r} has no docstring: the model reads it to know what the tool does. "
            f'Add one, for example """Say what {function.name} does."""',
        )
    parsed = parse_docstring(docstring)
    parameters = _check_args_schema(args_schema) if args_schema else _parameters(function, parsed)
    schema = {"name": function.name, "description": parsed.description, "parameters": parameters}
    check_schema(schema)
    return schema


def check_function(source: str, name: str) -> None:
    """Whether the source defines the function that a given schema names; raises SchemaError."""
    names = [node.name for node in _parse(source).body if isinstance(node, _Function)]
    if name not in names:
        defined = ", ".join(names) or "none"
        raise SchemaError("NO_FUNCTION", f"the schema names the function {name!r}; the source defines: {defined}")


def check_schema(schema: Schema) -> None:
    """Refuse a tool schema whose name or shape no model provider would take; raises SchemaError."""
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


def _parse(source: str) -> ast.Module:
    size = len(source.encode("utf-8", "surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        raise SchemaError("SOURCE_TOO_LARGE", f"tool source has {size} bytes; at most {MAX_SOURCE_BYTES} are accepted")
    try:
        return ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise SchemaError("SOURCE_DOES_NOT_PARSE", f"tool source does not parse: {where}{error.msg}") from error
    except ValueError as error:  # a null byte or a lone surrogate
        raise SchemaError("SOURCE_DOES_NOT_PARSE", f"tool source does not parse: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise SchemaError("SOURCE_DOES_NOT_PARSE", "tool source is too deeply nested to parse") from error


def _tool_function(module: ast.Module) -> _Function:
    functions = [node for node in module.body if isinstance(node, _Function)]
    if not functions:
        raise SchemaError(
            "NO_FUNCTION", "tool source defines no function at its top level; the last one becomes the tool"
        )
    return functions[-1]


def _parameters(function: _Function, docstring: Docstring) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for argument, default in _arguments(function):
        properties[argument.arg] = _property(function, argument, docstring)
        if default is None and not (argument.annotation and is_optional(argument.annotation)):
            required.append(argument.arg)
    return {"type": "object", "properties": properties, "required": required}


def _arguments(function: _Function) -> list[tuple[ast.arg, ast.expr | None]]:
    """What the model gives: every parameter with its default, without the hidden ones."""
    spec = function.args
    if spec.posonlyargs:
        raise SchemaError(
            "UNSUPPORTED_PARAMETER",
            f"function {function.name!r} has positional-only parameters; arguments come by name: remove '/'",
        )
    if extra := spec.vararg or spec.kwarg:
        raise SchemaError(
            "UNSUPPORTED_PARAMETER",
            f"function {function.name!r} takes variable arguments ({extra.arg!r}): name each parameter",
        )
    defaults = [None] * (len(spec.args) - len(spec.defaults)) + [*spec.defaults]
    pairs = list(zip(spec.args, defaults, strict=True))
    pairs += zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    return [pair for pair in pairs if pair[0].arg not in HIDDEN_PARAMETERS]


def _property(function: _Function, argument: ast.arg, docstring: Docstring) -> Schema:
    where = f"parameter {argument.arg!r} of function {function.name!r}"
    if argument.annotation is None:
        raise SchemaError(
            "PARAMETER_WITHOUT_TYPE", f"{where} has no type: write {argument.arg}: <type>, one of {SUPPORTED}"
        )
    try:
        schema = annotation_schema(argument.annotation)
    except UnsupportedType as error:
        raise SchemaError(
            "UNSUPPORTED_TYPE", f"{where} has type {error}, which has no JSON form; use {SUPPORTED}"
        ) from error
    description = docstring.arguments.get(argument.arg)
    if not description:
        raise SchemaError(
            "PARAMETER_WITHOUT_DESCRIPTION",
            f"{where} has no description: under 'Args:' of the docstring add '{argument.arg}: what it is'",
        )
    return schema | {"description": description}


def _check_args_schema(schema: Schema) -> Schema:
    if schema.get("type") != "object" or not isinstance(schema.get("properties", {}), dict):
        raise SchemaError("BAD_SCHEMA", "args_json_schema must be a JSON Schema of type object with its properties")
    return {"properties": {}, "required": [], **schema}
