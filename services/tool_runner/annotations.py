"""Type annotations, as syntax, to JSON Schema (draft 2020-12).

Pure, and evaluates nothing: names are compared as text, so `List`, `typing.List` and `t.List` are one.
"""

import ast
from typing import Any

Schema = dict[str, Any]

_PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "List": {"type": "array"},
    "dict": {"type": "object"},
    "Dict": {"type": "object"},
    "None": {"type": "null"},
    "Any": {},
}
SUPPORTED = "str, int, float, bool, list[T], dict[str, T], Optional[T], Union[T, U], Literal[...] and Any"
_JSON_TYPE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class UnsupportedType(ValueError):
    """The annotation has no JSON Schema here; the text is the annotation as written."""


def annotation_schema(node: ast.expr) -> Schema:
    """The schema of values of this annotation; raises UnsupportedType.

    `Optional[T]` is `T`: that the argument may be left out is said by `required`, not by its type.
    """
    match node:
        case ast.Constant(value=None):
            return dict(_PLAIN["None"])
        case ast.Constant(value=str(text)):
            return annotation_schema(_parse_forward(text))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _union([left, right])
        case ast.Subscript(value=origin, slice=arguments):
            return _subscripted(_name(origin), _elements(arguments), node)
    name = _name(node)
    if name not in _PLAIN:
        raise UnsupportedType(ast.unparse(node))
    return dict(_PLAIN[name])


def is_optional(node: ast.expr) -> bool:
    """True where the annotation admits None, so that the argument may be left out."""
    match node:
        case ast.Constant(value=str(text)):
            return is_optional(_parse_forward(text))
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return any(_is_none(part) or is_optional(part) for part in (left, right))
        case ast.Subscript(value=origin, slice=arguments):
            members = _elements(arguments)
            return _name(origin) == "Optional" or (_name(origin) == "Union" and any(map(_is_none, members)))
    return _is_none(node)


def _subscripted(origin: str, arguments: list[ast.expr], node: ast.expr) -> Schema:
    match origin, arguments:
        case "Optional", [only]:
            return annotation_schema(only)
        case "Union", [_, *_]:
            return _union(arguments)
        case "Annotated", [first, *_]:
            return annotation_schema(first)
        case "Literal", [_, *_]:
            return _literal(arguments)
        case (("list" | "List"), [item]):
            return {"type": "array", "items": annotation_schema(item)}
        case (("dict" | "Dict"), [key, value]) if _name(key) == "str":
            return {"type": "object", "additionalProperties": annotation_schema(value)}
    raise UnsupportedType(ast.unparse(node))


def _union(members: list[ast.expr]) -> Schema:
    flat = [part for member in members for part in _flatten(member)]
    schemas: list[Schema] = []
    for schema in (annotation_schema(part) for part in flat if not _is_none(part)):
        if schema not in schemas:
            schemas.append(schema)
    if not schemas:
        return dict(_PLAIN["None"])
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _flatten(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return [*_flatten(left), *_flatten(right)]
        case ast.Subscript(value=origin, slice=arguments) if _name(origin) in ("Union", "Optional"):
            return [part for member in _elements(arguments) for part in _flatten(member)]
    return [node]


def _literal(nodes: list[ast.expr]) -> Schema:
    try:
        values = [ast.literal_eval(node) for node in nodes]
    except ValueError as error:
        raise UnsupportedType(f"Literal[{', '.join(map(ast.unparse, nodes))}]") from error
    types = list(dict.fromkeys(_JSON_TYPE.get(type(value), "") for value in values))
    if "" in types:
        raise UnsupportedType(f"Literal[{', '.join(map(ast.unparse, nodes))}]")
    return {"enum": values} if len(types) > 1 else {"type": types[0], "enum": values}


def _parse_forward(text: str) -> ast.expr:
    """An annotation written as a string, as in `x: "int | None"`."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise UnsupportedType(repr(text)) from error
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        raise UnsupportedType(repr(text))
    return node


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
    return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
