"""Dataclass <-> row of a table, by names.

    record(Identity, row)                  the dataclass from a row, or from another mapping by column
    record_from_json(Group, value)         the same from what SQL made a JSON object of
    columns(settings, names)               values for INSERT and UPDATE
    names_in(IdentitySettings, table.c.keys())  the names of both

Columns that the dataclass does not have are passed over; fields without a column have their defaults. Arrays and JSON
arrays are tuples in the dataclass.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

D = TypeVar("D")
_Convert = Callable[[Any], Any]


def record(of: type[D], row: Mapping[Any, Any]) -> D:
    """Returns the dataclass of a row; null in a column of arrays is an empty one."""
    return of(**{name: tuple(row[name] or ()) if is_tuple else row[name] for name, is_tuple in _names(of, row)})


def record_from_json(of: type[D], value: Mapping[str, Any]) -> D:
    """Returns the dataclass of a JSON object, its ids and times read from their texts."""
    readers = _readers(of)  # type: ignore[arg-type] # mypy does not know that a class is hashable
    return record(of, {name: readers[name](each) if name in readers else each for name, each in value.items()})


def columns(value: Any, names: Iterable[str]) -> dict[str, Any]:
    """Returns the values of these fields as a statement takes them."""
    return {name: _column(getattr(value, name)) for name in names}


def names_in(of: type[Any], table: Container[str]) -> tuple[str, ...]:
    """Returns the fields of a dataclass that a table has as columns, in the order of their declaration."""
    return tuple(each.name for each in fields(of) if each.name in table)


def _column(value: Any) -> Any:
    match value:
        case tuple():
            return list(value)
        case Mapping():
            return dict(value)
        case _:
            return value


def _names(of: type[Any], row: Mapping[Any, Any]) -> list[tuple[str, bool]]:
    return [(name, is_tuple) for name, is_tuple in _tuples(of) if name in row]  # type: ignore[arg-type] # as above


@cache
def _tuples(of: type[Any]) -> tuple[tuple[str, bool], ...]:
    hints = get_type_hints(of)
    return tuple((each.name, get_origin(hints[each.name]) is tuple) for each in fields(of))


@cache
def _readers(of: type[Any]) -> Mapping[str, _Convert]:
    readers = {name: _reader(hint) for name, hint in get_type_hints(of).items()}
    return {name: reader for name, reader in readers.items() if reader is not None}


def _reader(hint: Any) -> _Convert | None:
    """Returns what reads a value of this type from JSON; None where JSON has it as it is."""
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        item = _reader(arguments[0])
        return None if item is None else lambda values: [item(each) for each in values or ()]
    types = (hint, *arguments)
    if UUID in types:
        return lambda text: None if text is None else UUID(text)
    if datetime in types:
        return lambda text: None if text is None else datetime.fromisoformat(text)
    return None
