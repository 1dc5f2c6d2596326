"""The rules of blocks and the edits of the memory tools, value by value."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.refusals import Refused
from services.memory.blocks.model import Block, BlockDraft, Operation, validate
from services.memory.core.editing import diffs, edits, patches
from services.memory.core.editing.edits import Edit

BLOCK = Block(
    id=UUID(int=1),
    label="human",
    value="one\ntwo",
    limit=20,
    description=None,
    read_only=False,
    hidden=False,
    metadata={},
    tags=(),
    project_id=None,
    template_name=None,
    is_template=False,
    created_by_id=UUID(int=2),
    last_updated_by_id=UUID(int=2),
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    updated_at=datetime(2026, 1, 1, tzinfo=UTC),
    version=1,
)


@pytest.mark.parametrize(
    ("value", "content", "result"),
    [("", "a", "a"), ("a", "b", "a\nb"), ("a\n", "b", "a\n\nb"), ("a", "b\nc", "a\nb\nc"), ("a", "\0b", "a\nb")],
)
def test_append_begins_a_new_line(value: str, content: str, result: str) -> None:
    edit = edits.append(value, content)
    assert edit.value == result
    assert edit.operation is Operation.APPEND


def test_rewriting_puts_a_text_in_the_place_of_another() -> None:
    edit = edits.rewrite("a\nb", "c\0\nd\ne")
    assert edit == Edit("c\nd\ne", 0, 3, Operation.REWRITE)
    with pytest.raises(Refused, match="line number"):
        edits.rewrite("a", "1→ a")
    assert edits.rewrite("a", "1→ a", trusted=True).value == "1→ a"


@pytest.mark.parametrize(
    ("value", "line", "result"),
    [
        ("", -1, "new"),
        ("", 0, "new"),
        ("a\nb", -1, "a\nb\nnew"),
        ("a\nb", 0, "new\na\nb"),
        ("a\nb", 1, "a\nnew\nb"),
        ("a\nb", 2, "a\nb\nnew"),
        ("a\n", 2, "a\n\nnew"),
    ],
)
def test_insert_goes_after_the_line(value: str, line: int, result: str) -> None:
    edit = edits.insert(value, "new", line)
    assert edit.value == result
    assert edit.value.split("\n")[edit.first : edit.last] == ["new"]


@pytest.mark.parametrize(("value", "line"), [("", 1), ("a", 2), ("a\nb", -2), ("a\nb", 3)])
def test_insert_names_the_lines_there_are(value: str, line: int) -> None:
    with pytest.raises(Refused, match=f"insert_line is {line}, but the block has"):
        edits.insert(value, "new", line)


@pytest.mark.parametrize(
    ("value", "old", "new", "result"),
    [
        ("a b c", "b", "x", "a x c"),
        ("a b c", " b", "", "a c"),
        ("a\nb", "a\nb", "c", "c"),
        ("a\tb", "a\tb", "c", "c"),
        ("x\ty\tz", "x       y", "q", "q       z"),
        ("5→6", "5→6", "7", None),
        ("aa", "a", "b", None),
        ("aaa", "aa", "b", None),
        ("a", "b", "c", None),
        ("a", "", "c", None),
        ("1: a", "Line 1: a", "c", None),
        ("a", "a", "2→ a", None),
        ("a", "A", "c", None),
    ],
)
def test_replace_one_matches_exactly_once(value: str, old: str, new: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(Refused):
            edits.replace_one(value, old, new)
    else:
        assert edits.replace_one(value, old, new).value == result


def test_replace_one_says_where_it_matched() -> None:
    with pytest.raises(Refused, match=r"occurs 3 times \(on lines 1, 1, 3\)"):
        edits.replace_one("b b\na\nb", "b", "c")


@pytest.mark.parametrize(
    ("value", "old", "new", "result"),
    [
        ("a b a", "a", "c", "c b c"),
        ("aaa", "aa", "b", "ba"),
        ("a", "a", "aa", "aa"),
        ("a b", " b", "", "a"),
        ("a", "b", "c", None),
        ("a", "", "c", None),
    ],
)
def test_replace_every_needs_a_match(value: str, old: str, new: str, result: str | None) -> None:
    if result is None:
        with pytest.raises(Refused):
            edits.replace_every(value, old, new)
    else:
        assert edits.replace_every(value, old, new).value == result


@given(st.text("ab\n", max_size=12), st.text("ab\n", min_size=1, max_size=3), st.text("abc\n", max_size=3))
def test_replace_every_is_what_python_does(value: str, old: str, new: str) -> None:
    if old in value:
        assert edits.replace_every(value, old, new).value == value.replace(old, new)


@given(st.text("ab\n\t", max_size=20), st.text("ab\nc", max_size=5), st.integers(-1, 5))
def test_an_insertion_keeps_every_line(value: str, text: str, line: int) -> None:
    lines = value.split("\n") if value else []
    if line <= len(lines):
        at = len(lines) if line == -1 else line
        edit = edits.insert(value, text, line)
        assert edit.value.split("\n") == [*lines[:at], *text.split("\n"), *lines[at:]]
        assert edit.value.split("\n")[edit.first : edit.last] == text.split("\n")


def test_an_edited_block_stays_within_its_limit() -> None:
    after, edit = edits.apply_edit(BLOCK, partial(edits.append, content="x" * 12))
    assert len(after.value) == 20
    assert edit.value == after.value
    with pytest.raises(Refused, match=r"would be 21 characters long, and its limit is 20\. Shorten it by at least 1"):
        edits.apply_edit(BLOCK, partial(edits.append, content="x" * 13))


def test_a_read_only_block_is_not_even_looked_at() -> None:
    def operation(value: str) -> Edit:
        raise AssertionError

    with pytest.raises(Refused, match='"human" is read-only'):
        edits.apply_edit(replace(BLOCK, read_only=True), operation)


def test_an_unknown_label_is_answered_with_those_there_are() -> None:
    assert edits.unknown_label("x", ["a", "b"]).message == ('There is no memory block "x". The blocks are: a, b.')
    assert "has no memory blocks" in edits.unknown_label("x", []).message


def test_a_report_shows_a_short_block_whole_and_a_long_one_around_the_change() -> None:
    after, edit = edits.apply_edit(BLOCK, partial(edits.append, content="three"))
    assert edits.report(after, edit) == "one\ntwo\nthree"
    long = replace(BLOCK, value="\n".join(f"line {number}" for number in range(1_000)), limit=100_000)
    after, edit = edits.apply_edit(long, partial(edits.insert, text="new", line=500))
    told = edits.report(after, edit)
    assert "Lines 497 to 505 of 1001 now read:\nline 496" in told
    assert told.endswith("line 499\nnew\nline 500\nline 501\nline 502\nline 503")
    after, edit = edits.apply_edit(long, partial(edits.append, content="y" * 50_000))
    assert len(edits.report(after, edit)) < 2_200


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (lambda: validate(BlockDraft(id=None, label="")), "BLOCK_INVALID"),
        (lambda: validate(BlockDraft(id=None, label="\0")), "BLOCK_INVALID"),
        (lambda: validate(BlockDraft(id=None, label="x" * 101)), "BLOCK_INVALID"),
        (lambda: validate(BlockDraft(id=None, label="x", limit=0)), "BLOCK_INVALID"),
        (lambda: validate(BlockDraft(id=None, label="x", tags=("y" * 501,))), "BLOCK_INVALID"),
        (lambda: validate(BlockDraft(id=None, label="x", value="yy", limit=1)), "BLOCK_OVER_LIMIT"),
        (lambda: validate(replace(BLOCK, value="x" * 21)), "BLOCK_OVER_LIMIT"),
        (lambda: validate(replace(BLOCK, limit=6)), "BLOCK_OVER_LIMIT"),
        (lambda: validate(replace(BLOCK, label="")), "BLOCK_INVALID"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_its_reason(check: Callable[[], object], reason: str) -> None:
    with pytest.raises(Refused) as refused:
        check()
    assert refused.value.reason == reason


def test_a_patch_changes_what_it_names() -> None:
    changed = validate(replace(BLOCK, value="\0v", metadata={"a\0": ["b\0", {"c": 1}]}, tags=("y", "x", "y")))
    assert changed == replace(BLOCK, value="v", metadata={"a": ["b", {"c": 1}]}, tags=("x", "y"))
    assert validate(replace(BLOCK)) == BLOCK


@pytest.mark.parametrize(
    ("work", "complaint"),
    [
        (lambda: edits.rewrite("", " \n" * 300_000), None),
        (lambda: patches.parts("*** Add Block:" + " " * 300_000), None),
        (lambda: edits.replace_one("a" * 100_000, "a" * 50_000, "b"), "more than 20 times"),
        (lambda: diffs.patch("a\n" * 50_000, " a\n" * 20_000 + "-b\n+c"), "do not stand"),
        (lambda: diffs.patch("\n".join(map(str, range(500))), "\n".join(f"@@\n-{n}\n+x" for n in range(500))), None),
        (lambda: edits.replace_every("a" * 100_000, "a", "b" * 100_000), "10000000000 characters long"),
    ],
)
def test_what_could_keep_the_service_busy_for_minutes_is_soon_done(
    work: Callable[[], object], complaint: str | None
) -> None:
    began = time.process_time()
    with nullcontext() if complaint is None else pytest.raises(Refused, match=complaint):
        work()
    assert time.process_time() - began < 1.0
