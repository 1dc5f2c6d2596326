"""Type annotations, as syntax, to JSON Schema (draft 2020-12).

Pure, and evaluates nothing: names are compared as text, so `List`, `typing.List` and `t.List` are one. What the source
itself defines (classes, aliases) comes from `Names`; `classes.py` reads them.
"""

import ast
from typing import Any

from services.tool_runner.core.schemas.constraints import Schema, constraints_of, with_constraints

_ANY_LIST: Schema = {"type": "array"}
_ANY_OBJECT: Schema = {"type": "object"}
_LISTS = frozenset({"list", "List", "Sequence", "MutableSequence", "Iterable", "Collection"})
_SETS = frozenset({"set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet"})
_TUPLES = frozenset({"tuple", "Tuple"})
_OBJECTS = frozenset({"dict", "Dict", "Mapping", "MutableMapping"})
_PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "Decimal": {"type": "number"},
    "None": {"type": "null"},
    "Any": {},
    "object": {},
    "datetime": {"type": "string", "format": "date-time"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "UUID": {"type": "string", "format": "uuid"},
    "Path": {"type": "string"},
    # Pydantic's.
    "EmailStr": {"type": "string", "format": "email"},
    "AnyUrl": {"type": "string", "format": "uri"},
    "AnyHttpUrl": {"type": "string", "format": "uri"},
    "HttpUrl": {"type": "string", "format": "uri"},
    "PositiveInt": {"type": "integer", "exclusiveMinimum": 0},
    "NonNegativeInt": {"type": "integer", "minimum": 0},
    "PositiveFloat": {"type": "number", "exclusiveMinimum": 0},
    "NonNegativeFloat": {"type": "number", "minimum": 0},
    **dict.fromkeys(_LISTS | _TUPLES, _ANY_LIST),
    **dict.fromkeys(_SETS, _ANY_LIST | {"uniqueItems": True}),
    **dict.fromkeys(_OBJECTS, _ANY_OBJECT),
}
# Pydantic's functions that make types: conint(ge=1).
_MAKERS = {"conint": "int", "confloat": "float", "constr": "str"}
SUPPORTED = (
    "str, int, float, bool, list[T], dict[str, T], tuple, set, Optional[T], Union[T, U], Literal[...], datetime, date, "
    "UUID, Any, or an Enum, Pydantic model, TypedDict or dataclass of the same source"
)
_NO_FORM = f"which has no JSON form; use {SUPPORTED}"
_JSON_TYPE = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_MOST_PARTS = 5_000


class UnsupportedType(ValueError):
    """The annotation has no JSON Schema here. The text reads on from "has type"."""

    def __init__(self, annotation: str, why: str = _NO_FORM) -> None:
        super().__init__(f"{annotation}, {why}")


class Names:
    """The names of the source; here none means anything. Counts how much has been made of them."""

    def __init__(self) -> None:
        self._parts = 0

    def schema(self, name: str, *, nullable: bool) -> Schema | None:
        """Returns the schema of a class or an alias; None where the source has none. Raises UnsupportedType."""
        return None

    def alias(self, name: str) -> ast.expr | None:
        """Returns what the name stands for, where it is another name for a type."""
        return None

    def member(self, node: ast.Attribute) -> object:
        """Returns the value of an Enum's member. Raises UnsupportedType."""
        raise UnsupportedType(ast.unparse(node))

    def spend(self) -> None:
        """Raises UnsupportedType when the schema grows beyond every use."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise UnsupportedType("too large a type", f"its schema has more than {_MOST_PARTS} parts: make it simpler")


def annotation_schema(node: ast.expr, names: Names, *, nullable: bool = False) -> Schema:
    """Returns the schema of values of this annotation; raises UnsupportedType.

    `Optional[T]` is `T` unless `nullable`: that an argument may be left out is said by `required`, not by its type.
    """
    names.spend()
    match node:
        case ast.Constant(value=None):
            return dict(_PLAIN["None"])
        case ast.Constant(value=str(text)):
            return annotation_schema(_parse_forward(text), names, nullable=nullable)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _union([left, right], names, nullable)
        case ast.Subscript(value=origin, slice=arguments):
            return _subscript(_name(origin), _elements(arguments), node, names, nullable)
        case ast.Call(func=maker, keywords=keywords) if _name(maker) in _MAKERS:
            return with_constraints(dict(_PLAIN[_MAKERS[_name(maker)]]), constraints_of(keywords))
    name = _name(node)
    if (schema := names.schema(name, nullable=nullable)) is not None:
        return schema
    if name not in _PLAIN:
        raise UnsupportedType(ast.unparse(node))
    return dict(_PLAIN[name])


def is_optional(node: ast.expr, names: Names) -> bool:
    """Returns whether the annotation admits None, so that the argument may be left out."""
    match node:
        case ast.Constant(value=str(text)):
            return is_optional(_parse_forward(text), names)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return any(_is_none(part) or is_optional(part, names) for part in (left, right))
        case ast.Subscript(value=origin, slice=arguments):
            return _is_optional_form(_name(origin), _elements(arguments), names)
    alias = names.alias(_name(node))
    return _is_none(node) if alias is None else is_optional(alias, names)


def _is_optional_form(origin: str, members: list[ast.expr], names: Names) -> bool:
    if origin == "Annotated" and members:
        return is_optional(members[0], names)
    return origin == "Optional" or (origin == "Union" and any(_is_none(part) for part in members))


def _subscript(origin: str, arguments: list[ast.expr], node: ast.expr, names: Names, nullable: bool) -> Schema:
    match origin, arguments:
        case "Optional", [only]:
            return _union([only, ast.Constant(None)], names, nullable)
        case "Union", [_, *_]:
            return _union(arguments, names, nullable)
        case "Annotated", [first, *metadata]:
            return with_constraints(annotation_schema(first, names, nullable=nullable), constraints_of(metadata))
        case (("Required" | "NotRequired" | "ReadOnly" | "Final"), [only]):
            return annotation_schema(only, names, nullable=nullable)
        case "Literal", [_, *_]:
            return _literal(arguments, names)
    schema = _container(origin, arguments, names)
    if schema is None:
        raise UnsupportedType(ast.unparse(node))
    return schema


def _container(origin: str, arguments: list[ast.expr], names: Names) -> Schema | None:
    def inside(node: ast.expr) -> Schema:
        return annotation_schema(node, names, nullable=True)

    match arguments:
        case [item] if origin in _LISTS:
            return {"type": "array", "items": inside(item)}
        case [item] if origin in _SETS:
            return {"type": "array", "items": inside(item), "uniqueItems": True}
        case [item, ast.Constant(value=value)] if origin in _TUPLES and value is ...:
            return {"type": "array", "items": inside(item)}
        case [_, *_] if origin in _TUPLES:
            return _tuple([inside(item) for item in arguments])
        case [key, value] if origin in _OBJECTS and inside(key).get("type") == "string":
            return {"type": "object", "additionalProperties": inside(value)}
    return None


def _tuple(items: list[Schema]) -> Schema:
    """Returns which place holds what is left out: not every provider takes `prefixItems`."""
    return {"type": "array", "items": one_of(items), "minItems": len(items), "maxItems": len(items)}


def one_of(schemas: list[Schema]) -> Schema:
    """Returns what any of them admits; at least one."""
    distinct: list[Schema] = []
    for schema in schemas:
        if schema not in distinct:
            distinct.append(schema)
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _union(members: list[ast.expr], names: Names, nullable: bool) -> Schema:
    flat = [part for member in members for part in _flatten(member)]
    null = dict(_PLAIN["None"])
    schemas = [annotation_schema(part, names, nullable=nullable) for part in flat if not _is_none(part)]
    if len(schemas) < len(flat) and (nullable or not schemas):
        schemas.append(null)
    return one_of(schemas)


def _flatten(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return [*_flatten(left), *_flatten(right)]
        case ast.Subscript(value=origin, slice=arguments) if _name(origin) == "Union":
            return [part for member in _elements(arguments) for part in _flatten(member)]
        case ast.Subscript(value=origin, slice=only) if _name(origin) == "Optional":
            return [*_flatten(only), ast.Constant(None)]
    return [node]


def _literal(nodes: list[ast.expr], names: Names) -> Schema:
    try:
        values = [names.member(node) if isinstance(node, ast.Attribute) else ast.literal_eval(node) for node in nodes]
    except ValueError as error:
        raise UnsupportedType(f"Literal[{', '.join(map(ast.unparse, nodes))}]") from error
    schema = enumeration(values)
    if schema is None:
        raise UnsupportedType(f"Literal[{', '.join(map(ast.unparse, nodes))}]")
    return schema


def enumeration(values: list[Any]) -> Schema | None:
    """Returns the schema of these values, None where one of them is no plain value of JSON."""
    types = list(dict.fromkeys(_JSON_TYPE.get(type(value), "") for value in values))
    if "" in types or not types:
        return None
    return {"enum": values} if len(types) > 1 else {"type": types[0], "enum": values}


def _parse_forward(text: str) -> ast.expr:
    """Returns an annotation written as a string, as in `x: "int | None"`."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
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
