"""Names that a source uses where it is loaded, and that nothing defines: each call would fail with a NameError. Pure.

Bodies of functions are left alone: what they use may come to be later. Whatever the module binds anywhere counts as
defined, and a source with `import *` may define anything.
"""

import ast
from collections.abc import Iterator

from services.tool_runner.core.schemas.ambient import KNOWN
from services.tool_runner.core.schemas.errors import SchemaError

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda)


def check_names(module: ast.Module) -> None:
    """Raises SchemaError (UNDEFINED_NAME) for the first name of defaults, decorators, bases and plain statements."""
    defined = defined_names(module)
    for node in _evaluated(module):
        if isinstance(node, ast.Name) and not is_defined(node.id, defined):
            raise undefined(node.id, node.lineno)


def check_annotation(annotation: ast.expr, defined: frozenset[str], where: str) -> None:
    """Raises SchemaError (UNDEFINED_NAME) for a name of a type that nothing defines, in text, too."""
    for name in _type_names(annotation):
        if not is_defined(name.id, defined):
            raise undefined(name.id, annotation.lineno, where)


def check_fields(module: ast.Module, defined: frozenset[str]) -> None:
    """Raises SchemaError (UNDEFINED_NAME) for a type of a class's field that nothing defines."""
    for owner in (node for node in _outside_functions(module) if isinstance(node, ast.ClassDef)):
        for part in owner.body:
            if isinstance(part, ast.AnnAssign):
                check_annotation(part.annotation, defined, f"class {owner.name!r}: ")


def defined_names(module: ast.Module) -> frozenset[str]:
    """Returns what the module binds outside of functions; with "*" where it may be anything."""
    return frozenset(name for node in _outside_functions(module) for name in _bound(node))


def is_defined(name: str, defined: frozenset[str]) -> bool:
    """Returns whether the source or its surroundings define the name."""
    return name in defined or name in KNOWN or "*" in defined


def undefined(name: str, line: int, where: str = "") -> SchemaError:
    """Returns the error about a name."""
    advice = "import it or define it there"
    return SchemaError(
        "UNDEFINED_NAME", f"line {line}: {where}the name {name!r} is used, but the source does not define it: {advice}"
    )


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if isinstance(child, _SCOPES):
            # What a function says is global is of the module.
            yield from (each for each in ast.walk(child) if isinstance(each, ast.Global))
        else:
            yield from _outside_functions(child)


def _bound(node: ast.AST) -> list[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name, *_type_parameters(node)]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.Global(names=names):
            return list(names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
    return _type_parameters(node)


def _type_parameters(node: ast.AST) -> list[str]:
    """Returns those of `def f[T]`, `class C[T]`, `type A[T]`; Python 3.12 has them."""
    return [parameter.name for parameter in getattr(node, "type_params", ())]


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yields what runs when the module is loaded; annotations apart, which a call gets by without."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            spec = child.args
            values = [*child.decorator_list, *spec.defaults, *filter(None, spec.kw_defaults)]
            parts: list[ast.AST] = [ast.Expr(value) for value in values]
        elif isinstance(child, ast.AnnAssign):
            parts = [ast.Expr(child.value)] if child.value else []
        elif isinstance(child, ast.Lambda):
            continue
        else:
            yield child
            parts = [child]
        for part in parts:
            yield from _evaluated(part)


def _type_names(node: ast.expr) -> Iterator[ast.Name]:
    """Yields the names of an annotation; the texts of Literal and Annotated are no types."""
    match node:
        case ast.Name():
            yield node
        case ast.Constant(value=str(text)):
            try:
                yield from _type_names(ast.parse(text.strip(), mode="eval").body)
            except (SyntaxError, ValueError):
                return  # said when the schema is made
        case ast.Subscript(value=form, slice=inner):
            yield from _type_names(form)
            match getattr(form, "id", getattr(form, "attr", "")):
                case "Literal":
                    parts: list[ast.AST] = list(ast.walk(inner))
                    yield from (part for part in parts if isinstance(part, ast.Name))
                case "Annotated" if isinstance(inner, ast.Tuple):
                    yield from _type_names(inner.elts[0])
                    metadata = (part for each in inner.elts[1:] for part in ast.walk(each))
                    yield from (part for part in metadata if isinstance(part, ast.Name))
                case _:
                    yield from _type_names(inner)
        case _:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    yield from _type_names(child)
