"""Loads a tool's source as its module, with what the reference's tools may use without an import.

`core/schemas/ambient.py` says the same names to whoever makes a tool. An annotation that names something else is kept
as text, so that a function runs whose types exist for its author alone: `annotated.py` gives such arguments attributes.
"""

import __future__

import importlib
import types
from collections.abc import Iterator
from typing import Any

_PYDANTIC = ("BaseModel", "Field")


def load(source: str, file: str, module: types.ModuleType) -> None:
    """Runs the source in the module. Raises whatever it does."""
    names = module.__dict__
    missing = _undefined(source, file) - names.keys()
    if missing:
        given = _ambient(missing)
        names.update(given)
        missing -= given.keys()
    code = compile(
        source, file, "exec", flags=__future__.annotations.compiler_flag if missing else 0, dont_inherit=True
    )
    exec(code, names)


def _ambient(missing: set[str]) -> dict[str, Any]:
    typing = importlib.import_module("typing")  # most tools do without, and it takes long to load
    given = {name: getattr(typing, name) for name in missing.intersection(typing.__all__)}
    if "typing" in missing:
        given["typing"] = typing
    wanted = sorted(missing.intersection(_PYDANTIC))
    if not wanted:
        return given
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError as error:
        text = f"{wanted[0]} is of pydantic, which is not in this sandbox: add it to the tool's pip_requirements"
        raise ImportError(text) from error
    return given | {name: getattr(pydantic, name) for name in wanted}


def _undefined(source: str, file: str) -> set[str]:
    """Returns the global names that the source uses, and that neither it nor Python defines."""
    tables = importlib.import_module("_symtable")  # what `symtable` is made of, without the rest of that
    top = tables.symtable(source, file, "exec")
    bound, used = set[str](), set[str]()
    for table in _tables(top):
        for name, flags in table.symbols.items():
            scope = (flags >> tables.SCOPE_OFF) & tables.SCOPE_MASK
            is_global = table is top or scope in (tables.GLOBAL_EXPLICIT, tables.GLOBAL_IMPLICIT)
            if is_global and flags & (tables.DEF_LOCAL | tables.DEF_IMPORT):
                bound.add(name)
            elif is_global and flags & tables.USE:
                used.add(name)
    return used - bound - vars(importlib.import_module("builtins")).keys()


def _tables(table: Any) -> Iterator[Any]:
    yield table
    for child in table.children:
        yield from _tables(child)
