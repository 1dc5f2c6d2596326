"""What changed between two values: a diff that leads from one to the other, in time even for large ones."""

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.core.editing.comparison import difference


def applied(value: str, diff: str) -> str:
    """A strict reader of unified diffs: every unchanged and removed line must stand where the header says."""
    old = value.split("\n") if value else []
    new, at = list[str](), 0
    for line in diff.split("\n") if diff else []:
        if header := re.match(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$", line):
            first = int(header[1]) - (header[2] != "0")
            new += old[at:first]
            at = first
            assert len(new) == int(header[3]) - (header[4] != "0")
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [line[1:]] if line[0] == " " else []
            at += 1
    return "\n".join(new + old[at:])


def test_equal_values_have_no_diff() -> None:
    found = difference("a\nb", "a\nb")
    assert (found.diff, found.added_lines, found.removed_lines) == ("", 0, 0)


def test_a_change_is_shown_in_its_place() -> None:
    lines = [f"line {number}" for number in range(1, 21)]
    found = difference("\n".join(lines), "\n".join([*lines[:9], "new", *lines[10:], "+++ last"]))
    assert found.diff.split("\n") == [
        "@@ -7,7 +7,7 @@", " line 7", " line 8", " line 9", "-line 10", "+new", " line 11", " line 12", " line 13",
        "@@ -18,3 +18,4 @@", " line 18", " line 19", " line 20", "++++ last",
    ]  # fmt: skip
    assert (found.added_lines, found.removed_lines) == (2, 1)


@pytest.mark.parametrize(("old", "new"), [("", "a"), ("a", ""), ("a", "a\n"), ("a\n\nb", "a\nb"), ("@@ -1 +1 @@", "x")])
def test_ends_and_empty_lines(old: str, new: str) -> None:
    assert applied(old, difference(old, new).diff) == new


@given(st.lists(st.sampled_from("abc"), max_size=30), st.lists(st.sampled_from("abc"), max_size=30))
def test_a_diff_leads_from_one_value_to_the_other(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)
    assert applied(before, difference(before, after).diff) == after


def test_large_values_are_compared_in_time() -> None:
    chance = random.Random(1)
    old = [chance.choice("ab") * 40 for _ in range(100_000)]
    started = time.process_time()
    for new in ([*old[:50_000], "x", *old[50_000:]], [chance.choice("ab") * 40 for _ in range(100_000)]):
        found = difference("\n".join(old), "\n".join(new))
        assert applied("\n".join(old), found.diff) == "\n".join(new)
    assert time.process_time() - started < 5
    assert difference("\n".join(old), "\n".join([*old, "y"])).added_lines == 1
