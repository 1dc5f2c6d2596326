"""memory_apply_patch: where hunks stand, and what is refused."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.refusals import Refused
from services.memory.blocks.model import Operation
from services.memory.core.editing.diffs import patch

TEXT = "one\ntwo\nthree\ntwo\nfour"


@pytest.mark.parametrize(
    ("value", "diff", "result"),
    [
        (TEXT, " one\n-two\n+2", "one\n2\nthree\ntwo\nfour"),
        (TEXT, "@@ -9,9 +9,9 @@\n three\n-two\n+2\n four", "one\ntwo\nthree\n2\nfour"),
        (TEXT, "--- a/human\n+++ b/human\n@@ -1 +1 @@\n-one\n+1\n@@\n-four\n+4\n", "1\ntwo\nthree\ntwo\n4"),
        (TEXT, "@@\n-four\n+4\n@@\n-one\n+1\n+1a", "1\n1a\ntwo\nthree\ntwo\n4"),
        (TEXT, " four\n+five\n\\ No newline at end of file", TEXT + "\nfive"),
        (TEXT, "+zero\n one", "zero\n" + TEXT),
        (TEXT, "-one\n-two\n-three\n two", "two\nfour"),
        ("", "+new\n+text", "new\ntext"),
        ("gone", "-gone", ""),
        ("a\n\nb", " a\n\n-b\n+c", "a\n\nc"),
        ("-- old\nx", "--- old\n+-- new", "-- new\nx"),
        ("--- x\ny", "@@\n---- x\n+--- z", "--- z\ny"),
        ("*** star", "-*** star\n+*** moon", "*** moon"),
        ("a", "-a\n+\0b", "b"),
    ],
)
def test_hunks_stand_where_their_lines_do(value: str, diff: str, result: str) -> None:
    edit = patch(value, diff)
    assert edit.value == result
    assert edit.operation is Operation.PATCH


@pytest.mark.parametrize(
    ("value", "diff", "complaint"),
    [
        (TEXT, "", "changes nothing"),
        (TEXT, " one\n two", "changes nothing"),
        (TEXT, "-two\n+2", r"hunk 1 stand in the block 2 times \(on lines 2, 4\)"),
        (TEXT, "-One\n+1", "hunk 1 do not stand in the block"),
        (TEXT, "@@\n-one\n+1\n@@\n-one\n+1", "hunk 2 do not stand in the block"),
        (TEXT, "-one\n-three\n+1", "must match its lines exactly: 'one"),
        (TEXT, "+zero", "only adds lines"),
        (TEXT, "one\n-two", "Every line of a patch begins with"),
        (TEXT, "-1→ one\n+1", "line number"),
        (TEXT, "*** Rename Block: human", "are not part of a unified diff"),
        ("", "-a\n+b", "do not stand"),
    ],
)
def test_what_cannot_be_placed_is_refused(value: str, diff: str, complaint: str) -> None:
    with pytest.raises(Refused, match=complaint):
        patch(value, diff)


def test_the_lines_shown_are_those_that_changed() -> None:
    value = "\n".join(str(number) for number in range(100))
    edit = patch(value, "@@\n-90\n+x\n+y\n@@\n-10\n@@\n 50\n+z")
    lines = edit.value.split("\n")
    assert lines[edit.first : edit.last] == lines[10:92]
    assert lines[90:92][-1] == "y"


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12), st.lists(st.sampled_from("abcdef"), max_size=12))
def test_a_diff_with_its_whole_text_as_context_makes_the_other_text(before: list[str], after: list[str]) -> None:
    diff = "\n".join(difflib.unified_diff(before, after, "a", "b", lineterm="", n=100))
    if before != after:
        assert patch("\n".join(before), diff).value == "\n".join(after)
