"""TypeScript's types, as syntax, to JSON Schema. Pure; names of the same source come from `names.py`."""

from typing import Protocol

from tree_sitter import Node

from services.tool_runner.core.schemas.annotations import UnsupportedType, enumeration, one_of
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.typescript.jsdoc import parse_doc
from services.tool_runner.core.schemas.typescript.parser import line_of, named_children, string_of, text_of

SUPPORTED = (
    "string, number, boolean, T[], Record<string, T>, an object type, a union, literals, "
    "or an interface, a type or an enum of the same source"
)
_NULL: Schema = {"type": "null"}
_PLAIN: dict[str, Schema] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},  # JSDoc's
    "boolean": {"type": "boolean"},
    "bigint": {"type": "integer"},
    "any": {},
    "unknown": {},
    "object": {"type": "object"},
    "Object": {"type": "object"},
    "Array": {"type": "array"},
    "array": {"type": "array"},
}
# What is no value of JSON: as part of a union it says that the value may be missing.
_NOTHING = frozenset({"undefined", "void", "never"})
_ARRAYS = frozenset({"Array", "ReadonlyArray", "Iterable"})


class Names(Protocol):
    """The meaning of names."""

    def schema(self, name: str, arguments: list[Node], node: Node) -> Schema | None:
        """Returns that of an interface, type, enum or type parameter; None for no such name. Raises UnsupportedType."""
        ...

    def spend(self, parts: int = 1) -> None:
        """Raises UnsupportedType when the schema grows beyond every use."""
        ...


def unsupported_type(node: Node, why: str = f"which has no JSON form; use {SUPPORTED}") -> UnsupportedType:
    """Returns the error for a type that cannot be."""
    return UnsupportedType(" ".join(text_of(node).split())[:200], why)


def type_schema(node: Node, names: Names) -> Schema:
    """Returns the schema of values of this type; raises UnsupportedType."""
    names.spend()
    match node.type:
        case "type_annotation" | "parenthesized_type" | "readonly_type" | "optional_type":
            return type_schema(named_children(node)[-1], names)
        case "predefined_type" | "type_identifier" | "nested_type_identifier":
            return _identifier_schema(node, [], names)
        case "generic_type":
            arguments = node.child_by_field_name("type_arguments")
            return _identifier_schema(node, named_children(arguments) if arguments else [], names)
        case "array_type":
            return {"type": "array", "items": type_schema(named_children(node)[0], names)}
        case "tuple_type":
            return _tuple(named_children(node), names)
        case "union_type":
            return _union(_members(node, "union_type"), names)
        case "intersection_type":
            parts = _members(node, "intersection_type")
            return merge([(part, type_schema(part, names)) for part in parts])
        case "object_type" | "interface_body":
            return object_schema(node, names)
        case "literal_type":
            return _literals([_literal(node)]) or _NULL
        case "template_literal_type":
            return {"type": "string"}
    raise unsupported_type(node)


def _identifier_schema(node: Node, arguments: list[Node], names: Names) -> Schema:
    name = text_of((node.child_by_field_name("name") or node) if node.type == "generic_type" else node)
    if (schema := names.schema(name, arguments, node)) is not None:
        return schema
    if not arguments and name in _PLAIN:
        return dict(_PLAIN[name])
    if len(arguments) == 1 and name in _ARRAYS:
        return {"type": "array", "items": type_schema(arguments[0], names)}
    if len(arguments) == 2 and name == "Record":
        return _record(arguments[0], type_schema(arguments[1], names), names)
    if (utility := _utility_type(name, arguments, names)) is not None:
        return utility
    raise unsupported_type(node)


def _record(key: Node, value: Schema, names: Names) -> Schema:
    keys = type_schema(key, names)
    if keys.get("type") not in ("string", "number"):
        raise unsupported_type(key, "which cannot be the keys of an object in JSON")
    if "enum" not in keys:
        return {"type": "object", "additionalProperties": value}
    names_kept = [str(each) for each in keys["enum"]]
    names.spend(len(names_kept))
    return {"type": "object", "properties": dict.fromkeys(names_kept, value), "required": names_kept}


def _utility_type(name: str, arguments: list[Node], names: Names) -> Schema | None:
    """Returns the schema of TypeScript's own types that make an object of another."""
    if name not in ("Partial", "Required", "Readonly", "NonNullable", "Pick", "Omit") or not arguments:
        return None
    schema = type_schema(arguments[0], names)
    match name, arguments[1:]:
        case "Readonly", []:
            return schema
        case "NonNullable", []:
            options = [option for option in schema.get("anyOf", [schema]) if option != _NULL]
            return one_of(options) if options else None
        case "Partial", []:
            return schema | {"required": []}
        case "Required", []:
            return schema | {"required": list(schema.get("properties", {}))}
        case (("Pick" | "Omit"), [keys]):
            chosen = set(map(str, type_schema(keys, names).get("enum", ())))
            return _narrow(schema, chosen if name == "Pick" else set(schema.get("properties", {})) - chosen)
    return None


def _narrow(schema: Schema, names: set[str]) -> Schema:
    properties = {name: part for name, part in schema.get("properties", {}).items() if name in names}
    return schema | {
        "properties": properties,
        "required": [name for name in schema.get("required", []) if name in names],
    }


def _tuple(items: list[Node], names: Names) -> Schema:
    """Returns which place holds what is left out: not every provider takes `prefixItems`."""
    if not items:
        return {"type": "array", "maxItems": 0}
    if any(item.type == "rest_type" for item in items):
        raise unsupported_type(items[-1], "which is open at its end; use an array")
    types = [_tuple_item(item) for item in items]
    least = sum(item.type not in ("optional_type", "optional_parameter") for item in items)
    schemas = [type_schema(item, names) for item in types]
    return {"type": "array", "items": one_of(schemas), "minItems": least, "maxItems": len(items)}


def _tuple_item(item: Node) -> Node:
    """Returns the type; of a named item (`[x: number]`) without its name."""
    return item.child_by_field_name("type") or item


def _members(node: Node, kind: str) -> list[Node]:
    """Yields the members of a union or an intersection, which nest to the left: in a loop."""
    nodes: list[Node] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.type == kind:
            waiting.extend(named_children(part))
        else:
            nodes.append(part)
    return nodes[::-1]


def _union(parts: list[Node], names: Names) -> Schema:
    names.spend(len(parts))
    literals = [_literal(part) for part in parts if part.type == "literal_type" and not _is_nothing(part)]
    plain = [value for value in literals if value is not None]
    schemas = [found] if (found := _literals(plain)) else []
    for part in parts:
        if part.type != "literal_type" and not _is_nothing(part):
            schemas.append(type_schema(part, names))
    if len(plain) < len(literals):
        schemas.append(_NULL)
    if not schemas:
        raise unsupported_type(parts[0])
    return one_of(schemas)


def admits_nothing(node: Node) -> bool:
    """Returns whether `undefined` is one of its values, so that it may be left out."""
    inner = named_children(node)[0] if node.type == "type_annotation" else node
    return any(map(_is_nothing, _members(inner, "union_type")))


def _is_nothing(node: Node) -> bool:
    return node.type in ("predefined_type", "literal_type") and text_of(node) in _NOTHING


def _literals(values: list[object]) -> Schema | None:
    names = {(type(value), value): value for value in values if value is not None}  # True is 1
    return enumeration(list(names.values()))


def _literal(node: Node) -> object:
    """Returns its value; None for null."""
    inner = named_children(node)[0] if named_children(node) else node
    text = text_of(inner)
    match inner.type:
        case "string":
            return string_of(inner)
        case "number" | "unary_expression":
            return number_of(inner)
        case "true" | "false":
            return text == "true"
        case "null":
            return None
    raise unsupported_type(node)


def number_of(node: Node) -> int | float:
    """Raises UnsupportedType for what is not written as one."""
    text = text_of(node).replace("_", "").replace(" ", "")
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        raise unsupported_type(node) from None
    if value - value != 0:
        raise unsupported_type(node)
    return value


def object_schema(body: Node, names: Names) -> Schema:
    """Returns the schema of `{ a: string; b?: number }`, with the comment on each."""
    properties: dict[str, Schema] = {}
    required: list[str] = []
    rest: Schema | None = None
    comment = ""
    for part in body.named_children:
        match part.type:
            case "comment":
                comment = text_of(part)
                continue
            case "property_signature":
                name, found = _property(part, names)
                description = parse_doc(comment).description
                properties[name] = found | ({"description": description} if description else {})
                if not _is_optional(part):
                    required.append(name)
            case "index_signature":
                kind = part.child_by_field_name("type")
                rest = type_schema(kind, names) if kind else {}
            case _:
                raise unsupported_type(part, f"a member (line {line_of(part)}) that is not a value")
        comment = ""
    schema: Schema = {"type": "object", "properties": properties, "required": required}
    if rest is None:
        return schema
    return schema | {"additionalProperties": rest} if properties else {"type": "object", "additionalProperties": rest}


def _property(node: Node, names: Names) -> tuple[str, Schema]:
    key, kind = node.child_by_field_name("name"), node.child_by_field_name("type")
    if key is None or key.type == "computed_property_name":
        raise unsupported_type(node, "whose name is computed")
    name = string_of(key) if key.type == "string" else text_of(key)
    if kind is None:
        return name, {}
    try:
        return name, type_schema(kind, names)
    except UnsupportedType as error:
        raise UnsupportedType("an object", f"whose {name!r} (line {line_of(node)}) has type {error}") from None


def _is_optional(node: Node) -> bool:
    kind = node.child_by_field_name("type")
    return any(child.type == "?" for child in node.children) or (kind is not None and admits_nothing(kind))


def merge(parts: list[tuple[Node, Schema]]) -> Schema:
    """Returns an object that is all of them; raises UnsupportedType where one is no object."""
    whole: Schema = {"type": "object", "properties": {}, "required": []}
    for node, schema in parts:
        if schema.get("type") != "object":
            raise unsupported_type(node, "which is no object, so that it cannot be put together with another")
        whole["properties"] |= schema.get("properties", {})
        whole["required"] += [name for name in schema.get("required", []) if name not in whole["required"]]
        if "additionalProperties" in schema:
            whole["additionalProperties"] = schema["additionalProperties"]
    return whole
