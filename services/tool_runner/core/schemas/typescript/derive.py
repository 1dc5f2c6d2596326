"""A tool's JSON schema from its TypeScript or JavaScript source. Pure.

    /** Roll a die.
     *  @param sides How many sides it has. */
    export function rollDice(sides: number = 6): number { ... }

gives a name, a description and parameters as `schema.py` does for Python. One destructured parameter stands for all
arguments: `({ city, days = 3 }: { city: string; days?: number })`; that is also how the Node worker calls it.
"""

from dataclasses import dataclass

from tree_sitter import Node

from services.tool_runner.core.schemas.annotations import UnsupportedType
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.rules import check_args_schema, check_schema, no_such_function
from services.tool_runner.core.schemas.typescript.functions import Function, functions, the_tool
from services.tool_runner.core.schemas.typescript.jsdoc import Doc, parse_doc
from services.tool_runner.core.schemas.typescript.names import SourceNames
from services.tool_runner.core.schemas.typescript.parser import check_sound, line_of, named_children, parse, text_of
from services.tool_runner.core.schemas.typescript.types import SUPPORTED, admits_nothing, type_schema

STATE_PARAMETERS = frozenset({"agent_state", "agentState"})
_HIDDEN = STATE_PARAMETERS | {"this", "request_heartbeat"}
_OF_DEFAULT = {
    "number": "number",
    "unary_expression": "number",
    "string": "string",
    "true": "boolean",
    "false": "boolean",
}


@dataclass(frozen=True)
class _Parameter:
    pattern: Node
    type: Node | None
    default: Node | None
    optional: bool

    @property
    def name(self) -> str:
        return text_of(named_children(self.pattern)[0] if self.pattern.type == "rest_pattern" else self.pattern)


def derive_schema(source: str, args_schema: Schema | None = None, description: str = "") -> Schema:
    """Returns the schema of the tool in `source`; raises SchemaError.

    `args_schema` stands in for types and `description` for a comment, as in `python.derive_schema`.
    """
    tree = parse(source)
    check_sound(tree)
    function = the_tool(functions(tree.root_node))
    if function is None:
        raise SchemaError(
            "NO_FUNCTION",
            "tool source defines no function at its top level; the last that is exported becomes the tool",
        )
    where = f"line {line_of(function.node)}"
    if not function.name:
        raise SchemaError(
            "NO_FUNCTION", f"{where}: the exported function has no name, and the tool needs one: give it one"
        )
    doc = parse_doc(function.comment)
    text = doc.description
    if not text and args_schema:
        text = description.strip() or f"The {function.name} tool"
    if not text:
        raise SchemaError(
            "NO_DOCSTRING",
            f"{where}: function {function.name!r} has no JSDoc comment: the model reads it to know what the tool does. "
            f"Add one above it, for example /** Say what {function.name} does. */",
        )
    own_schema = check_args_schema(args_schema) if args_schema else None
    parameters = own_schema or _parameters(function, doc, SourceNames(tree.root_node))
    schema = {"name": function.name, "description": text, "parameters": parameters}
    check_schema(schema)
    return schema


def check_function(source: str, name: str) -> None:
    """Checks that the source has the function; raises SchemaError.

    One that is exported without a name is taken for it, as the Node worker does.
    """
    tree = parse(source)
    found = functions(tree.root_node)
    if any(function.name == name or (function.exported and not function.name) for function in found):
        return
    check_sound(tree)
    if "exports" in source or "export default" in source:  # of what cannot be known without running it
        return
    raise no_such_function(name, [function.name for function in found if function.name])


def takes_state(source: str, name: str) -> bool:
    """Returns whether that function has a parameter `agent_state` or `agentState`."""
    matching = [function for function in functions(parse(source).root_node) if function.name in (name, "")]
    return any(_is_state_name(function) for function in matching[-1:])


def _is_state_name(function: Function) -> bool:
    return any(parameter.name in STATE_PARAMETERS for parameter in _all(function.node))


def _all(node: Node) -> list[_Parameter]:
    if (only := node.child_by_field_name("parameter")) is not None:  # x => ...
        return [_Parameter(only, None, None, False)]
    listed = node.child_by_field_name("parameters")
    parameters: list[_Parameter] = []
    for part in named_children(listed) if listed is not None else []:
        pattern, default = part.child_by_field_name("pattern"), part.child_by_field_name("value")
        if pattern is not None:
            optional = part.type == "optional_parameter" or default is not None or pattern.type == "rest_pattern"
            parameters.append(_Parameter(pattern, part.child_by_field_name("type"), default, optional))
    return parameters


def _parameters(function: Function, doc: Doc, names: SourceNames) -> Schema:
    own = [parameter for parameter in _all(function.node) if parameter.name not in _HIDDEN]
    if len(own) == 1 and own[0].pattern.type == "object_pattern":
        return _destructuring(function, own[0], doc, names)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for parameter in own:
        where = f"line {line_of(parameter.pattern)}: parameter {parameter.name!r} of function {function.name!r}"
        if parameter.pattern.type not in ("identifier", "rest_pattern"):
            raise SchemaError(
                "UNSUPPORTED_PARAMETER", f"{where} is taken apart and is not the only one: give it a name"
            )
        properties[parameter.name] = _with_description(
            where, parameter.name, _schema(where, parameter, doc, names), doc
        )
        if not _may_be_left_out(parameter, doc):
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required}


def _may_be_left_out(parameter: _Parameter, doc: Doc) -> bool:
    if parameter.optional or (parameter.type is not None and admits_nothing(parameter.type)):
        return True
    doc_parameter = doc.parameters.get(parameter.name)
    return parameter.type is None and doc_parameter is not None and doc_parameter.optional


def _schema(where: str, parameter: _Parameter, doc: Doc, names: SourceNames) -> Schema:
    node = parameter.type or _jsdoc_type(doc, parameter.name)
    if node is None:
        kind = _OF_DEFAULT.get(parameter.default.type) if parameter.default is not None else None
        if kind:
            return {"type": kind}
        name = parameter.name
        raise SchemaError("PARAMETER_WITHOUT_TYPE", f"{where} has no type: write {name}: <type>, one of {SUPPORTED}")
    try:
        return type_schema(node, names)
    except UnsupportedType as error:
        raise SchemaError("UNSUPPORTED_TYPE", f"{where} has type {error}") from error


def _jsdoc_type(doc: Doc, name: str) -> Node | None:
    """Returns the type that a comment gives, for JavaScript."""
    doc_parameter = doc.parameters.get(name)
    if doc_parameter is None or not doc_parameter.type:
        return None
    tree = parse(f"type T = {doc_parameter.type};")
    declared = tree.root_node.named_children
    if tree.root_node.has_error or len(declared) != 1:
        return None
    return declared[0].child_by_field_name("value")


def _with_description(where: str, name: str, schema: Schema, doc: Doc) -> Schema:
    doc_parameter = doc.parameters[name].text if name in doc.parameters else ""
    description = doc_parameter or schema.get("description")
    if not description:
        raise SchemaError(
            "PARAMETER_WITHOUT_DESCRIPTION",
            f"{where} has no description: add '@param {name} what it is' to the comment above the function",
        )
    return schema | {"description": description}


def _destructuring(function: Function, parameter: _Parameter, doc: Doc, names: SourceNames) -> Schema:
    """Returns the arguments of a function with one destructured parameter: its parts."""
    where = f"line {line_of(parameter.pattern)}: the parameter of function {function.name!r}"
    parts = [part for part in named_children(parameter.pattern) if part.type != "rest_pattern"]
    if parameter.type is not None:
        schema = _schema(where, parameter, doc, names)
    else:
        properties = {_key(part): _schema(where, _of_part(part), doc, names) for part in parts}
        required = [_key(part) for part in parts if not _may_be_left_out(_of_part(part), doc)]
        schema = {"type": "object", "properties": properties, "required": required}
    if schema.get("type") != "object" or "properties" not in schema:
        raise SchemaError("UNSUPPORTED_TYPE", f"{where} is taken apart, and its type is no object with named parts")
    defaulted = {_key(part) for part in parts if _of_part(part).default is not None}
    return {
        "type": "object",
        "properties": {
            name: _with_description(f"{where}, {name!r}", name, part, doc)
            for name, part in schema["properties"].items()
        },
        "required": [name for name in schema.get("required", []) if name not in defaulted],
    }


def _key(part: Node) -> str:
    """Returns the name outside: of `city`, `city = "Rome"`, `city: place`."""
    key = part.child_by_field_name("key") or part.child_by_field_name("left") or part
    return text_of(key)


def _of_part(part: Node) -> _Parameter:
    """Returns a part of a destructured parameter, as if it stood alone."""
    inner = part.child_by_field_name("value") or part  # city: place = "Rome"
    name = part.child_by_field_name("key") or part.child_by_field_name("left") or part
    default = inner.child_by_field_name("right")
    return _Parameter(name, None, default, default is not None)
