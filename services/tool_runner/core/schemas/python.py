"""A tool's JSON schema from its Python source, by syntax alone: nothing is imported, evaluated or run.

Pure. The tool is the last function of the module; its name, docstring (of any style) and type hints give::

    {"name": ..., "description": ..., "parameters": {"type": "object", "properties": ..., "required": ...}}

Source: the reference API (custom tools), which derives the same from a function object; as there, a default
makes an argument optional and is not itself shown.
Hostile source can exhaust a parser: `child_processes/` runs this with limits.
"""

import ast

from services.tool_runner.core.schemas.annotations import SUPPORTED, UnsupportedType, annotation_schema, is_optional
from services.tool_runner.core.schemas.classes import SourceNames
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.docstring import Docstring, parse_docstring
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.rules import check_args_schema, check_schema, check_size, no_such_function
from services.tool_runner.core.schemas.undefined import check_annotation, check_fields, check_names, defined_names

STATE_PARAMETER = "agent_state"
# Given by the runner at the call, left from a method, or a habit of older tools; never by the model.
HIDDEN_PARAMETERS = frozenset({STATE_PARAMETER, "self", "request_heartbeat"})

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def derive_schema(source: str, args_schema: Schema | None = None, description: str = "") -> Schema:
    """Returns the schema of the tool in `source`; raises SchemaError.

    `args_schema` (a JSON Schema of type object) stands in for the type hints and argument descriptions when
    it is given; the name still comes from the function. A docstring may be missing then: `description` takes its place.
    """
    module = _parse(source)
    function = _tool_function(module)
    docstring = (ast.get_docstring(function) or "").strip()
    if not docstring and args_schema:
        docstring = description.strip() or f"The {function.name} tool"
    if not docstring:
        raise SchemaError(
            "NO_DOCSTRING",
            f"line {function.lineno}: function {function.name!r} has no docstring: the model reads it to know what the "
            f'tool does. Add one, for example """Say what {function.name} does."""',
        )
    parsed = parse_docstring(docstring)
    own_schema = check_args_schema(args_schema) if args_schema else None
    parameters = own_schema or _parameters(function, parsed, SourceNames(module), defined_names(module))
    check_fields(module, defined_names(module))
    check_names(module)
    schema = {"name": function.name, "description": parsed.description, "parameters": parameters}
    check_schema(schema)
    return schema


def check_function(source: str, name: str = "") -> None:
    """Checks that the source defines the function, "": any; raises SchemaError."""
    module = _parse(source)
    _tool_function(module)
    names = [node.name for node in module.body if isinstance(node, _Function)]
    if name and name not in names:
        raise no_such_function(name, names)


def takes_state(source: str, name: str) -> bool:
    """Returns whether the function that is run for a tool of this name has a parameter `agent_state`."""
    functions = [node for node in _parse(source).body if isinstance(node, _Function)]
    named = [function for function in functions if function.name == name]
    spec = (named or functions)[-1].args
    return any(argument.arg == STATE_PARAMETER for argument in spec.posonlyargs + spec.args + spec.kwonlyargs)


def _parse(source: str) -> ast.Module:
    check_size(source)
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


def _parameters(function: _Function, docstring: Docstring, names: SourceNames, defined: frozenset[str]) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for argument, default in _arguments(function):
        if argument.annotation:
            where = f"parameter {argument.arg!r} of function {function.name!r}: "
            check_annotation(argument.annotation, defined, where)
        properties[argument.arg] = _property(function, argument, docstring, names)
        if default is None and not (argument.annotation and is_optional(argument.annotation, names)):
            required.append(argument.arg)
    return {"type": "object", "properties": properties, "required": required}


def _arguments(function: _Function) -> list[tuple[ast.arg, ast.expr | None]]:
    """Returns what the model gives: every parameter with its default, without the hidden ones."""
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


def _property(function: _Function, argument: ast.arg, docstring: Docstring, names: SourceNames) -> Schema:
    where = f"line {argument.lineno}: parameter {argument.arg!r} of function {function.name!r}"
    if argument.annotation is None:
        raise SchemaError(
            "PARAMETER_WITHOUT_TYPE", f"{where} has no type: write {argument.arg}: <type>, one of {SUPPORTED}"
        )
    try:
        schema = annotation_schema(argument.annotation, names)
    except UnsupportedType as error:
        raise SchemaError("UNSUPPORTED_TYPE", f"{where} has type {error}") from error
    description = docstring.arguments.get(argument.arg) or schema.get("description")
    if not description:
        raise SchemaError(
            "PARAMETER_WITHOUT_DESCRIPTION",
            f"{where} has no description: under 'Args:' of the docstring add '{argument.arg}: what it is'",
        )
    return schema | {"description": description}
