"""Finds the function that becomes the tool: the last that is exported, else the last at the top level. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from services.tool_runner.core.schemas.typescript.parser import named_children, text_of

_DECLARED = frozenset({"function_declaration", "generator_function_declaration"})
_WRITTEN = frozenset({"arrow_function", "function_expression", "generator_function", "method_definition"})
_AROUND = frozenset({"parenthesized_expression", "as_expression", "satisfies_expression", "type_assertion"})


@dataclass(frozen=True)
class Function:
    """`name` is "" for an unnamed default; `comment` the one before it."""

    name: str
    node: Node
    comment: str
    exported: bool = False


def functions(root: Node) -> list[Function]:
    """Returns those of the source in its order, by the names they are exported under."""
    functions: list[Function] = []
    exported: dict[str, str] = {}
    comment = ""
    for statement in root.named_children:
        functions += _of_statement(statement, comment)
        exported |= dict(_exports(statement))
        comment = text_of(statement) if statement.type == "comment" else ""
    return [
        replace(function, name=exported[function.name], exported=True) if function.name in exported else function
        for function in functions
    ]


def the_tool(functions: list[Function]) -> Function | None:
    """Returns the one of them that becomes the tool."""
    choices = [function for function in functions if function.exported] or functions
    return choices[-1] if choices else None


def _of_statement(statement: Node, comment: str) -> Iterator[Function]:
    exported = statement.type == "export_statement"
    node = statement
    if exported:
        inner = statement.child_by_field_name("declaration") or statement.child_by_field_name("value")
        if inner is None:
            return
        node = inner
    if node.type in _DECLARED:
        yield Function(_name(node), node, comment, exported)
    elif node.type in ("lexical_declaration", "variable_declaration"):
        for part in named_children(node):
            if (value := _function_in(part.child_by_field_name("value"))) is not None:
                yield Function(_name(part), value, comment, exported)
    elif node.type == "expression_statement":
        yield from _commonjs_exports(node, comment)
    elif exported and (value := _function_in(node)) is not None:
        yield Function(_name(value), value, comment, True)


def _commonjs_exports(statement: Node, comment: str) -> Iterator[Function]:
    """Returns CommonJS exports: exports.f = ..., module.exports = f, module.exports = { f() {}, g: () => ... }."""
    target, value = _assignment(statement)
    if value is None or not _is_exports(target):
        return
    if (written := _function_in(value)) is not None:
        yield Function(_name(written) or _last(target), written, comment, True)
    for part in named_children(value) if value.type == "object" else []:
        inner = _function_in(part if part.type == "method_definition" else part.child_by_field_name("value"))
        if inner is not None:
            before = part.prev_named_sibling
            doc = text_of(before) if before is not None and before.type == "comment" else comment
            yield Function(_name(part) or text_of(part.child_by_field_name("key") or part), inner, doc, True)


def _exports(statement: Node) -> Iterator[tuple[str, str]]:
    """Yields (name inside, name outside) that a statement exports without declaring it."""
    if statement.type == "export_statement":
        for clause in named_children(statement):
            if clause.type == "identifier":  # export default f
                yield text_of(clause), text_of(clause)
            for each in named_children(clause) if clause.type == "export_clause" else []:
                inside, outside = each.child_by_field_name("name"), each.child_by_field_name("alias")
                if inside is not None:
                    name = text_of(outside or inside)
                    yield text_of(inside), text_of(inside) if name == "default" else name
        return
    target, value = _assignment(statement)
    if value is None or not _is_exports(target):
        return
    if value.type == "identifier":
        yield text_of(value), text_of(value)
    for part in named_children(value) if value.type == "object" else []:
        if part.type == "shorthand_property_identifier":
            yield text_of(part), text_of(part)
        key, inner = part.child_by_field_name("key"), part.child_by_field_name("value")
        if key is not None and inner is not None and inner.type == "identifier":
            yield text_of(inner), text_of(key)


def _assignment(statement: Node) -> tuple[str, Node | None]:
    inner = (
        named_children(statement)[0] if statement.type == "expression_statement" and named_children(statement) else None
    )
    if inner is None or inner.type != "assignment_expression":
        return "", None
    left = inner.child_by_field_name("left")
    return "".join(text_of(left).split()) if left is not None else "", inner.child_by_field_name("right")


def _is_exports(target: str) -> bool:
    return target in ("module.exports", "exports") or target.startswith(("module.exports.", "exports."))


def _last(target: str) -> str:
    return "" if target in ("module.exports", "exports") else target.rsplit(".", 1)[-1]


def _function_in(node: Node | None) -> Node | None:
    """Returns the function that an expression is; None for any other."""
    while node is not None and node.type in _AROUND and named_children(node):
        node = named_children(node)[0]
    return node if node is not None and node.type in _WRITTEN else None


def _name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return text_of(name) if name is not None else ""
