"""Interfaces, types and enums of a source. Pure; everything is inlined, so what contains itself is refused."""

from tree_sitter import Node

from services.tool_runner.core.schemas.annotations import UnsupportedType, enumeration
from services.tool_runner.core.schemas.constraints import Schema
from services.tool_runner.core.schemas.typescript.jsdoc import parse_doc
from services.tool_runner.core.schemas.typescript.parser import named_children, string_of, text_of
from services.tool_runner.core.schemas.typescript.types import (
    merge,
    number_of,
    object_schema,
    type_schema,
    unsupported_type,
)

_KINDS = frozenset({"interface_declaration", "type_alias_declaration", "enum_declaration"})
_MOST_PARTS = 5_000


class SourceNames:
    """The declarations at the top level of a source."""

    def __init__(self, root: Node) -> None:
        self._declared: dict[str, list[tuple[Node, str]]] = {}  # an interface may be declared in parts
        comment = ""
        for statement in root.named_children:
            node = statement.child_by_field_name("declaration") or statement
            name = node.child_by_field_name("name")
            if node.type in _KINDS and name is not None:
                self._declared.setdefault(text_of(name), []).append((node, comment))
            comment = text_of(statement) if statement.type == "comment" else ""
        self._open: list[str] = []
        self._bound: list[dict[str, Schema]] = []  # type parameters, innermost last
        self._parts = 0

    def spend(self, parts: int = 1) -> None:
        """See types.Names."""
        self._parts += parts
        if self._parts > _MOST_PARTS:
            raise UnsupportedType("too large a type", f"its schema has more than {_MOST_PARTS} parts: make it simpler")

    def schema(self, name: str, arguments: list[Node], node: Node) -> Schema | None:
        """See types.Names."""
        if self._bound and name in self._bound[-1]:
            schema = self._bound[-1][name]
            self.spend(_size(schema))
            return schema
        if name not in self._declared:
            return None
        if name in self._open:
            raise unsupported_type(
                node, "which contains itself: a schema cannot be without end; use object for the inner one"
            )
        frame = self._parameters(self._declared[name][0][0], arguments)
        self._open.append(name)
        self._bound.append(frame)
        try:
            return self._of(name)
        finally:
            self._open.pop()
            self._bound.pop()

    def _parameters(self, declaration: Node, arguments: list[Node]) -> dict[str, Schema]:
        """Returns what the type parameters of a declaration are here."""
        type_parameters = declaration.child_by_field_name("type_parameters")
        frame: dict[str, Schema] = {}
        for place, parameter in enumerate(named_children(type_parameters) if type_parameters else []):
            name, default = parameter.child_by_field_name("name"), parameter.child_by_field_name("value")
            argument = arguments[place] if place < len(arguments) else default and named_children(default)[0]
            if name is None or argument is None:
                raise unsupported_type(
                    declaration.child_by_field_name("name") or declaration, "which needs its type arguments"
                )
            frame[text_of(name)] = type_schema(argument, self)
        return frame

    def _of(self, name: str) -> Schema:
        parts = [(node, self._declaration(node)) for node, _ in self._declared[name]]
        schema = parts[0][1] if len(parts) == 1 else merge(parts)
        comments = (parse_doc(comment).description for _, comment in self._declared[name])
        description = next(filter(None, comments), "")
        return schema | {"description": description} if description else schema

    def _declaration(self, node: Node) -> Schema:
        if node.type == "enum_declaration":
            return _enum(node)
        if node.type == "type_alias_declaration":
            value = node.child_by_field_name("value")
            assert value is not None
            return type_schema(value, self)
        body = node.child_by_field_name("body")
        assert body is not None
        own = object_schema(body, self)
        bases = [
            base for part in node.named_children if part.type == "extends_type_clause" for base in named_children(part)
        ]
        return merge([*((base, type_schema(base, self)) for base in bases), (node, own)]) if bases else own


def _enum(node: Node) -> Schema:
    body = node.child_by_field_name("body")
    values: list[object] = []
    following: float = 0
    for member in named_children(body) if body else []:
        value = member.child_by_field_name("value")
        if value is None:
            values.append(following)
        elif value.type == "string":
            values.append(string_of(value))
        else:
            values.append(number_of(value))
        last = values[-1]
        following = last + 1 if isinstance(last, int | float) else 0
    schema = enumeration(values)
    if schema is None:
        raise unsupported_type(node.child_by_field_name("name") or node, "an enum without members")
    return schema


def _size(schema: object) -> int:
    if isinstance(schema, dict):
        return 1 + sum(map(_size, schema.values()))
    return 1 + sum(map(_size, schema)) if isinstance(schema, list) else 0
