"""The classes and aliases that a source defines, as JSON Schema: Enum, Pydantic model, TypedDict, dataclass.

Pure, by syntax alone. Everything is inlined where it is used, since not every provider takes `$ref`; what contains
itself is therefore refused.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.tool_runner.core.schemas.annotations import Names, UnsupportedType, annotation_schema, enumeration
from services.tool_runner.core.schemas.constraints import (
    Constraints,
    Schema,
    called_name,
    constraints_of,
    is_field,
    is_json,
    literal,
    with_constraints,
)
from services.tool_runner.core.schemas.docstring import parse_docstring

_ENUMS = frozenset({"Enum", "StrEnum", "IntEnum"})
_KINDS = {"BaseModel": "model", "TypedDict": "typed_dict", **dict.fromkeys(_ENUMS, "enum")}
_KNOWN = "an Enum, a Pydantic BaseModel, a TypedDict or a dataclass of the same source"


@dataclass(frozen=True)
class _Field:
    name: str
    annotation: ast.expr
    default: ast.expr | None
    total: bool  # whether a TypedDict's own fields are required


class SourceNames(Names):
    """The names that a module defines at its top level."""

    def __init__(self, module: ast.Module) -> None:
        super().__init__()
        self._classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
        self._aliases = dict(_aliases(module))
        self._open: list[str] = []  # what is being inlined, outermost first

    def schema(self, name: str, *, nullable: bool) -> Schema | None:
        """See Names."""
        if name not in self._classes and name not in self._aliases:
            return None
        if name in self._open:
            raise UnsupportedType(
                name, "which contains itself: a schema cannot be without end; use dict for the inner one"
            )
        self._open.append(name)
        try:
            if name in self._classes:
                return self._class(self._classes[name])
            return annotation_schema(self._aliases[name], self, nullable=nullable)
        finally:
            self._open.pop()

    def alias(self, name: str) -> ast.expr | None:
        """See Names."""
        return self._aliases.get(name) if name not in self._classes else None

    def member(self, node: ast.Attribute) -> object:
        """See Names."""
        owner = self._classes.get(node.value.id) if isinstance(node.value, ast.Name) else None
        members = _members(owner) if owner else {}
        if node.attr not in members:
            raise UnsupportedType(ast.unparse(node))
        return members[node.attr]

    def _class(self, node: ast.ClassDef) -> Schema:
        kind = self._kind(node, frozenset())
        docs = parse_docstring(ast.get_docstring(node) or "")
        if kind == "enum":
            schema = self._enum(node)
        elif kind:
            schema = self._object(node, kind, docs.arguments)
        else:
            raise UnsupportedType(node.name, f"a class that is not {_KNOWN}")
        return with_constraints(schema, {"description": docs.description})

    def _kind(self, node: ast.ClassDef, seen: frozenset[str]) -> str:
        if any(_text(part) == "dataclass" for part in node.decorator_list):
            return "dataclass"
        for base in map(_text, node.bases):
            if base in _KINDS:
                return _KINDS[base]
            inherits = base in self._classes and base not in seen
            if inherits and (kind := self._kind(self._classes[base], seen | {node.name})):
                return kind
        return ""

    def _enum(self, node: ast.ClassDef) -> Schema:
        schema = enumeration(list(_members(node).values()))
        if schema is None:
            raise UnsupportedType(
                node.name, "an Enum whose values are not all written out as text, numbers or true and false"
            )
        return schema

    def _object(self, node: ast.ClassDef, kind: str, docs: dict[str, str]) -> Schema:
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for field in self._fields(node, frozenset()).values():
            constraints = _field_constraints(field)
            name = _outer_name(field.name, constraints)
            try:
                schema = annotation_schema(field.annotation, self, nullable=True)
            except UnsupportedType as error:
                where = f"whose field {field.name!r} (line {field.annotation.lineno}) has type {error}"
                raise UnsupportedType(node.name, where) from None
            described = {"description": docs[field.name]} if field.name in docs else {}
            properties[name] = with_constraints(schema, described | constraints)
            if "default" in constraints and is_json(constraints["default"]) and constraints["default"] is not None:
                properties[name]["default"] = constraints["default"]
            if _is_required(field, kind, constraints):
                required.append(name)
        closed = {"additionalProperties": False} if _forbids_more(node) else {}
        return {"type": "object", "properties": properties, "required": required} | closed

    def _fields(self, node: ast.ClassDef, seen: frozenset[str]) -> dict[str, _Field]:
        """Returns those of its bases first; a field that is said again keeps its place."""
        fields: dict[str, _Field] = {}
        for base in map(_text, reversed(node.bases)):
            if base in self._classes and base not in seen:
                fields |= self._fields(self._classes[base], seen | {node.name})
        total = not any(word.arg == "total" and literal(word.value) is False for word in node.keywords)
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and _is_data(part):
                fields[part.target.id] = _Field(part.target.id, part.annotation, part.value, total)
        return fields


def _is_required(field: _Field, kind: str, constraints: Constraints) -> bool:
    """Returns whether it has no default: Pydantic then asks for it, even where it may be None."""
    if kind == "typed_dict":
        form = _text(field.annotation.value) if isinstance(field.annotation, ast.Subscript) else ""
        return form == "Required" or (field.total and form != "NotRequired")
    return constraints.get("default", ...) is ... and "default_factory" not in constraints


def _field_constraints(field: _Field) -> Constraints:
    """Returns what Annotated and Field say of it, and its default."""
    constraints: Constraints = {}
    match field.annotation:
        case ast.Subscript(value=form, slice=ast.Tuple(elts=[_, *metadata])) if _text(form) == "Annotated":
            constraints |= constraints_of(metadata)
    if isinstance(field.default, ast.Call) and is_field(field.default):
        if field.default.args:
            constraints["default"] = literal(field.default.args[0])
        constraints |= constraints_of(field.default.keywords)
    elif field.default is not None:
        constraints["default"] = literal(field.default)
    return constraints


def _outer_name(name: str, constraints: Constraints) -> str:
    """Returns what it is called outside: Pydantic reads by alias."""
    for key in ("validation_alias", "alias"):
        if isinstance(constraints.get(key), str) and constraints[key]:
            return str(constraints[key])
    return name


def _is_data(node: ast.AnnAssign) -> bool:
    annotation = node.annotation
    form = _text(annotation.value if isinstance(annotation, ast.Subscript) else annotation)
    assert isinstance(node.target, ast.Name)
    return (
        form not in ("ClassVar", "PrivateAttr")
        and not node.target.id.startswith("_")
        and node.target.id != "model_config"
    )


def _members(node: ast.ClassDef) -> dict[str, Any]:
    """Returns the values of an Enum by name; what is no literal is left as something that is no JSON."""
    lower = "StrEnum" in map(_text, node.bases)
    members: dict[str, Any] = {}
    for part in node.body:
        if not isinstance(part, ast.Assign) or not isinstance(part.targets[0], ast.Name):
            continue
        name = part.targets[0].id
        if name.startswith("__") or (name.startswith("_") and name.endswith("_")):
            continue
        if isinstance(part.value, ast.Call) and called_name(part.value) == "auto":
            members[name] = name.lower() if lower else len(members) + 1
        else:
            members[name] = literal(part.value)
    return members


def _forbids_more(node: ast.ClassDef) -> bool:
    """Returns whether the class has `extra="forbid"` in its ConfigDict or as a keyword."""
    words = [word for part in ast.walk(node) if isinstance(part, ast.Call | ast.ClassDef) for word in part.keywords]
    return any(word.arg == "extra" and literal(word.value) == "forbid" for word in words)


def _aliases(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Returns `Name = type`, `Name: TypeAlias = type`, `type Name = type` and `Name = NewType("Name", type)`."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if not isinstance(value, ast.Constant):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _ if type(node).__name__ == "TypeAlias":  # Python 3.12 has it
                name, value = node.name.id, node.value  # type: ignore[attr-defined]
            case _:
                continue
        if isinstance(value, ast.Call):
            if called_name(value) == "NewType" and len(value.args) == 2:
                yield name, value.args[1]
        elif _text(value) != name:  # List = typing.List
            yield name, value


def _text(node: ast.expr) -> str:
    """Returns the last part of a dotted name; of a call, of what is called."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Call():
            return called_name(node)
        case ast.Subscript(value=value):
            return _text(value)
    return ""
