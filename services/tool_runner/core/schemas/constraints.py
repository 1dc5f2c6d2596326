"""Constraints that `Field(...)`, `Annotated[...]` and their like add to a type. Pure; reads syntax."""

import ast
from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]

_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_SIZES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_PATTERNS = frozenset({"pattern", "regex"})
_CALLS = frozenset({"Field", "StringConstraints", "Interval", "Len", "Query", "Body"})
# Of the package annotated-types: one value, given by place.
_SINGLE = {
    "Ge": "ge",
    "Gt": "gt",
    "Le": "le",
    "Lt": "lt",
    "MultipleOf": "multiple_of",
    "MinLen": "min_length",
    "MaxLen": "max_length",
}
_NOT_LITERAL = object()

# Of a Field: description, default (a Python value), alias, ge, gt, min_length ...; absent where it is not said.
Constraints = dict[str, Any]


def constraints_of(arguments: Sequence[ast.expr] | Sequence[ast.keyword]) -> Constraints:
    """Returns those of the metadata of an Annotated, or of the keywords of a Field."""
    constraints: Constraints = {}
    for part in arguments:
        if isinstance(part, ast.keyword):
            constraints |= _keyword(part)
        else:
            constraints |= _metadata(part)
    return constraints


def is_field(node: ast.expr | None) -> bool:
    """Returns whether this is `Field(...)`."""
    return isinstance(node, ast.Call) and called_name(node) in {"Field", "field"}


def called_name(node: ast.Call) -> str:
    """Returns the name of what is called, without its module."""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def with_constraints(schema: Schema, constraints: Constraints) -> Schema:
    """Returns the schema with what is said of its values; what says nothing of such values is passed over."""
    schema = dict(schema)
    inner = _not_null(schema)
    kind = inner.get("type")
    for name, value in constraints.items():
        if name in _NUMBERS and kind in ("integer", "number") and _is_number(value):
            inner[_NUMBERS[name]] = value
        elif name in ("min_length", "max_length", "min_items", "max_items") and kind in _SIZES:
            if isinstance(value, int):
                inner[_SIZES[kind][name.startswith("max")]] = value
        elif name in _PATTERNS and kind == "string" and isinstance(value, str):
            inner["pattern"] = value
    if isinstance(text := constraints.get("description"), str) and text:
        schema["description"] = text
    if isinstance(examples := constraints.get("examples"), list) and is_json(examples):
        schema["examples"] = examples
    return schema


def _not_null(schema: Schema) -> Schema:
    """Returns the part of `T or null` that says what T is, as a part of `schema` that may be changed."""
    options = schema.get("anyOf")
    if not options or len(options) != 2 or options[1] != {"type": "null"}:
        return schema
    inner = dict(options[0])
    schema["anyOf"] = [inner, options[1]]
    return inner


def _metadata(node: ast.expr) -> Constraints:
    match node:
        case ast.Constant(value=str(text)):
            return {"description": text}
        case ast.Call(args=[value]) if called_name(node) in _SINGLE:
            return {_SINGLE[called_name(node)]: literal(value)}
        case ast.Call(args=[ast.Constant(value=str(text))]) if called_name(node) == "Doc":
            return {"description": text}
        case ast.Call(args=positional) if called_name(node) in _CALLS:
            default = {"default": literal(positional[0])} if positional and positional[0] else {}
            return default | constraints_of(node.keywords)
    return {}


def _keyword(keyword: ast.keyword) -> Constraints:
    if keyword.arg is None:
        return {}
    return {keyword.arg: literal(keyword.value)}


def literal(node: ast.expr) -> Any:
    """Returns the value of a literal; something that is no JSON for what would have to be run."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _NOT_LITERAL


def is_json(value: Any) -> bool:
    """Returns whether a literal is a value that JSON has."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item) for key, item in value.items())
    return value is None or isinstance(value, bool | str | int) or (isinstance(value, float) and value - value == 0)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_json(value)
