"""The arguments of a tool whose annotations name more than JSON has."""

from typing import Any

import pytest

from services.tool_runner.sandboxes.worker.annotated import as_annotated

DEFINITIONS = """
import enum, uuid, datetime, decimal, pathlib, functools
from dataclasses import dataclass, field
from typing import *
from pydantic import BaseModel

class Color(enum.Enum):
    RED = "red"

class Item(BaseModel):
    name: str
    count: int = 1

@dataclass
class Order:
    item: Item
    colors: list[Color] = field(default_factory=list)
    next: "Optional[Order]" = None

UserId = NewType("UserId", str)
"""
GIVEN_ITEM = {"name": "a"}


def converted(annotation: str, value: Any, *, future: bool = False) -> str:
    """The repr of what the function is given."""
    namespace: dict[str, Any] = {"__name__": __name__}
    first = "from __future__ import annotations\n" if future else ""
    source = f"{first}{DEFINITIONS}\ndef act(x: {annotation}, y=None): return repr(x)\n"
    exec(compile(source, "tool", "exec", dont_inherit=True), namespace)
    return str(namespace["act"](**as_annotated(namespace["act"], {"x": value})))


@pytest.mark.parametrize("future", [False, True])
@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        ("Item", GIVEN_ITEM, "Item(name='a', count=1)"),
        ("'Item'", GIVEN_ITEM, "Item(name='a', count=1)"),
        ("Optional[Item]", GIVEN_ITEM, "Item(name='a', count=1)"),
        ("Item | None", None, "None"),
        ("list[Item]", [GIVEN_ITEM], "[Item(name='a', count=1)]"),
        ("List['Item']", [GIVEN_ITEM], "[Item(name='a', count=1)]"),
        ("Dict[str, Item]", {"k": GIVEN_ITEM}, "{'k': Item(name='a', count=1)}"),
        ("Annotated[Item, 'it']", GIVEN_ITEM, "Item(name='a', count=1)"),
        ("Union[int, Item, Order]", GIVEN_ITEM, "Item(name='a', count=1)"),
        ("Union[str, Color]", "red", "'red'"),
        ("Union[int, Color]", "red", "<Color.RED: 'red'>"),
        ("Literal[Color.RED]", "red", "<Color.RED: 'red'>"),
        ("Order", {"item": GIVEN_ITEM, "colors": ["red"], "next": {"item": GIVEN_ITEM}},
         "Order(item=Item(name='a', count=1), colors=[<Color.RED: 'red'>], "
         "next=Order(item=Item(name='a', count=1), colors=[], next=None))"),
        ("tuple[int, Color]", [1, "red"], "(1, <Color.RED: 'red'>)"),
        ("tuple[Color, ...]", ["red"], "(<Color.RED: 'red'>,)"),
        ("set[int]", [1, 1], "{1}"),
        ("Sequence[Color]", ["red"], "[<Color.RED: 'red'>]"),
        ("uuid.UUID", "00000000-0000-0000-0000-000000000001", "UUID('00000000-0000-0000-0000-000000000001')"),
        ("datetime.datetime", "2026-01-02T03:04:05Z",
         "datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)"),
        ("datetime.date", "2026-01-02", "datetime.date(2026, 1, 2)"),
        ("decimal.Decimal", 1.5, "Decimal('1.5')"),
        ("pathlib.Path", "/inputs/a", "PosixPath('/inputs/a')"),
        ("UserId", "u", "'u'"),
        ("dict", {"a": 1}, "{'a': 1}"),
        ("list[str]", "no list", "'no list'"),
        ("'Missing'", {"a": 1}, "{'a': 1}"),
        ("Any", {"a": 1}, "{'a': 1}"),
    ],
)  # fmt: skip
def test_arguments_become_what_the_annotation_says(annotation: str, value: Any, expected: str, future: bool) -> None:
    assert converted(annotation, value, future=future) == expected


def test_what_a_class_refuses_is_raised() -> None:
    with pytest.raises(ValueError, match="validation error for Item"):
        converted("Item", {"count": 1})
    with pytest.raises(ValueError, match="'blue' is not a valid Color"):
        converted("Optional[Color]", "blue")


def test_wrapped_functions_and_other_callables() -> None:
    namespace: dict[str, Any] = {"__name__": __name__}
    wrapped = "@functools.lru_cache\ndef act(x: Color): return x\nother = functools.partial(act)\n"
    exec(DEFINITIONS + wrapped, namespace)
    assert as_annotated(namespace["act"], {"x": "red"}) == {"x": namespace["Color"].RED}
    assert as_annotated(namespace["other"], {"x": "red"}) == {"x": "red"}
