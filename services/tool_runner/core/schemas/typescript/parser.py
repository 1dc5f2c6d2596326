"""Parses TypeScript, of which JavaScript is taken to be a part. Pure."""

from tree_sitter import Language, Node, Parser, Tree
from tree_sitter_typescript import language_typescript

from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.rules import check_size

_LANGUAGE = Language(language_typescript())
_QUOTE_CHARS = 40


def parse(source: str) -> Tree:
    """Returns the tree, also of a source with faults. Raises SchemaError (SOURCE_TOO_LARGE)."""
    check_size(source)
    return Parser(_LANGUAGE).parse(source.encode("utf-8", "surrogatepass"))


def check_sound(tree: Tree) -> None:
    """Raises SchemaError (SOURCE_DOES_NOT_PARSE) with the line of the first fault."""
    fault = _first_fault(tree.root_node)
    if fault is None:
        return
    near = f"{fault.type!r} is missing" if fault.is_missing else f"near {text_of(fault)[:_QUOTE_CHARS]!r}"
    raise SchemaError("SOURCE_DOES_NOT_PARSE", f"tool source does not parse: line {line_of(fault)}: {near}")


def _first_fault(node: Node) -> Node | None:
    """Finds the first fault, in a loop: the tree may be as deep as its source is long."""
    if not node.has_error:
        return None
    while not (node.is_error or node.is_missing):
        broken = next((child for child in node.children if child.has_error or child.is_missing), None)
        if broken is None:
            return node
        node = broken
    return node


def text_of(node: Node) -> str:
    """Returns the source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def line_of(node: Node) -> int:
    """Returns the line where it begins, from 1."""
    return node.start_point[0] + 1


def named_children(node: Node) -> list[Node]:
    """Returns its named children without comments."""
    return [child for child in node.named_children if child.type != "comment"]


def string_of(node: Node) -> str:
    """Returns what a string literal says. Escapes are those that JSON has, others stand for their character."""
    text = text_of(node)[1:-1]
    if "\\" not in text:
        return text
    pieces = text.split("\\")
    texts = [pieces[0]]
    escapes = iter(pieces[1:])
    for piece in escapes:
        if not piece:  # a backslash that stands for itself: what follows it is as written
            texts.append("\\" + next(escapes, ""))
        else:
            texts.append({"n": "\n", "t": "\t", "r": "\r"}.get(piece[0], piece[0]) + piece[1:])
    return "".join(texts)
