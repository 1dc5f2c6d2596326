"""Edits of blocks with other line ends and forms of letters than models write, and names in one form."""

from dataclasses import replace

import pytest

from services.common.core.refusals import Refused
from services.common.core.storable import storable_name
from services.memory.core.editing import edits
from services.memory.core.file_text.grep import compile_include
from services.memory.core.rules import unique_tags
from tests.unit.memory.test_blocks import BLOCK


def edited(value: str, old: str, new: str) -> str:
    block, _ = edits.apply_edit(replace(BLOCK, value=value), lambda text: edits.replace_one(text, old, new))
    return block.value


@pytest.mark.parametrize(
    ("value", "old", "new", "after"),
    [
        ("a\r\nb\r\nc", "a\nb", "x\ny", "x\r\ny\r\nc"),
        ("a\nb\nc", "a\r\nb", "x\r\ny", "x\ny\nc"),
        ("a\r\nb\nc", "a\nb", "x", "x\nc"),
        ("a\rb", "a\nb", "x", "x"),
        ("a\r\nb", "a\r\nb", "x\r\ny", "x\r\ny"),
        ("Cafe\u0301", "Caf\u00e9", "Bar", "Bar"),
        ("Caf\u00e9", "Cafe\u0301", "Bar", "Bar"),
    ],
)
def test_a_text_is_found_in_its_other_forms(value: str, old: str, new: str, after: str) -> None:
    assert edited(value, old, new) == after


def test_what_is_there_twice_is_still_asked_about() -> None:
    with pytest.raises(Refused, match="occurs 2 times"):
        edited("a\r\nb\r\na\r\nb", "a\nb", "x")
    with pytest.raises(Refused, match="does not occur"):
        edited("a\r\nb", "a\nc", "x")


def test_names_are_composed() -> None:
    assert storable_name("Cafe\u0301\0") == "Caf\u00e9"
    assert unique_tags(["Cafe\u0301", "Caf\u00e9"], "X") == ("Caf\u00e9",)
    assert compile_include("Cafe\u0301*.txt").search("Caf\u00e9-1.txt")
