"""What is in view of a file, which files give way to others, names, and lines that match a pattern."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.common.core.refusals import Refused
from services.memory.core.file_text.grep import (
    MOST_MATCHES,
    Grep,
    compile_include,
    compile_pattern,
    render_result,
)
from services.memory.core.file_text.lookup import KnownFile, bare, named, spellings
from services.memory.core.file_text.pages import pages_of, text_lines
from services.memory.core.file_text.views import OpenFile, View, Window, files_to_close, view_of
from services.memory.files.model import TextPage

# What is in view ----------------------------------------------------------------------------------------------

LINES = "\n".join(f"line {number}" for number in range(1, 31))


def seen(text: str, first: int = 1, last: int | None = None, limit: int = 10_000) -> View:
    pages = list(pages_of(text))
    return view_of(Window(first, last, limit, pages[-1].last_line if pages else 0), pages)


def test_the_format() -> None:
    # Lines without text have no number.
    assert seen("a\n\n  b").text == "[Viewing file start (out of 2 lines)]\n1: a\n2:   b"
    assert seen("") == View(0, 0, "[Viewing file start (out of 0 lines)]")
    assert seen("a\nb\nc", 2, 3).text == "[Viewing lines 2 to 3 (out of 3 lines)]\n2: b\n3: c"
    assert seen("a\nb\nc", 2).text == "[Viewing lines 2 to end (out of 3 lines)]\n2: b\n3: c"
    assert [seen("a\nb", *lines).is_whole for lines in ((1, None), (1, 2), (2, None))] == [True, False, False]


@pytest.mark.parametrize(
    ("first", "last", "limit", "shown"),
    [
        (1, None, 10_000, (1, 30)),
        (5, 9, 10_000, (5, 9)),
        (28, 99, 10_000, (28, 30)),
        # The file was replaced by a shorter one meanwhile.
        (99, 120, 10_000, (30, 30)),
        (1, None, 300, (1, 10)),
        (20, 25, 230, (20, 21)),
        (1, 30, 1, (1, 1)),
    ],
)
def test_lines_are_shown_as_far_as_they_fit(first: int, last: int | None, limit: int, shown: tuple[int, int]) -> None:
    view = seen(LINES, first, last, limit)
    assert (view.first_line, view.last_line) == shown
    lines = "file start" if (first, last) == (1, None) else f"lines {shown[0]} to {shown[1]}"
    assert view.text.startswith(f"[Viewing {lines} (out of 30 lines)]\n")
    assert (f"{shown[1]}: line {shown[1]}" in view.text) is (limit > 1)
    assert (f"open_files with offset={shown[1]} shows it" in view.text) is (shown[1] < min(last or 30, 30))


@given(st.text("ab \n", max_size=3_000), st.integers(1, 90), st.integers(200, 4_000))
def test_a_view_is_never_longer_than_its_limit(text: str, first: int, limit: int) -> None:
    view = seen(text, first, None, limit)
    assert len(view.text) <= limit
    assert view.first_line <= view.last_line


# Which files give way -----------------------------------------------------------------------------------------


def opened(*names: str) -> list[OpenFile]:
    return [OpenFile(UUID(int=ord(name)), name, float(turn)) for turn, name in enumerate(names)]


@pytest.mark.parametrize(
    ("now", "wanted", "most", "closed"),
    [
        ("abc", "d", 4, ""),
        ("abc", "d", 3, "a"),
        ("abc", "de", 3, "ab"),
        ("cab", "a", 3, ""),
        ("cab", "ad", 3, "c"),
        # The limit was lowered since.
        ("abcde", "e", 2, "abc"),
        ("abc", "d", 0, "abc"),
        ("", "d", 1, ""),
    ],
)
def test_those_opened_longest_ago_are_closed(now: str, wanted: str, most: int, closed: str) -> None:
    ids = [UUID(int=ord(name)) for name in wanted]
    assert "".join(one.path for one in files_to_close(opened(*now), ids, most)) == closed


# Names --------------------------------------------------------------------------------------------------------


def file(path: str, *, has_text: bool = True) -> KnownFile:
    folder, _, name = path.partition("/")
    return KnownFile(UUID(int=len(path)), folder, name, has_text, 3, 30)


FILES = [file("docs/a.md"), file("other/a.md"), file("docs/plan.md"), file("docs/new.pdf", has_text=False)]


def find(name: str) -> KnownFile:
    candidates = [one for one in FILES if name in (one.path, one.name) or one.name == bare(name)]
    return named(name, [one for one in candidates if name in (one.path, one.name)], [one.path for one in FILES])


def test_a_file_is_found_by_its_name_and_by_the_bare_one_where_it_is_clear() -> None:
    assert find("docs/a.md").path == "docs/a.md"
    assert find("plan.md").path == "docs/plan.md"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.md", 'Several files are called "a.md"; say which: "docs/a.md" or "other/a.md".'),
        ("docs/plans.md", "Close to it: docs/plan.md"),
        ("PLAN", "Close to it: docs/plan.md"),
        ("zzz", "Some that there are: docs/a.md, other/a.md"),
        ("docs/new.pdf", "is still being read, or could not be read"),
    ],
)
def test_a_name_that_is_none_is_told_with_names_that_are(name: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        find(name)
    assert said in refused.value.message


def test_a_name_may_be_written_as_the_prompt_shows_it() -> None:
    assert spellings("d/Gro\u0308ße.md") == ("d/Größe.md",)
    assert spellings("d/&lt;R&D&gt;.md") == ("d/&lt;R&D&gt;.md", "d/<R&D>.md")


def test_without_any_file_that_is_said() -> None:
    with pytest.raises(Refused, match="No folder with files is attached to you"):
        named("a", [], [])


# Patterns -----------------------------------------------------------------------------------------------------


def pages(text: str, lines: int) -> Iterator[TextPage]:
    """The text in pages of so many lines."""
    every, first = text.split("\n"), 1
    for number, start in enumerate(range(0, len(every), lines)):
        part = "\n".join(every[start : start + lines])
        last = first + len(text_lines(part)) - 1
        yield TextPage(page=number, first_line=first, last_line=last, text=part)
        first = last + 1


def grep(pattern: str, *texts: str, lines: int = 1_000, **options: Any) -> tuple[Grep, str]:
    search = Grep(compile_pattern(pattern, "pattern"), **options)
    whole = search.search(
        [(f"docs/{place}", page) for place, text in enumerate(texts) for page in pages(text, lines)],
        time.monotonic() + 60,
    )
    return search, render_result(search, pattern, looked=len(texts), files=len(texts), whole=whole)


@pytest.mark.parametrize("lines", [1, 2, 3, 1_000])
def test_matches_with_their_context_over_pages_and_files(lines: int) -> None:
    _, told = grep("B", "a\nb\nc\nd\ne\nf\nB b\nh", "x", "b", lines=lines)
    assert told == (
        "Found 3 matches in 2 files for pattern: 'B'; matches 1 to 3 are shown.\n\n"
        "docs/0:\n  1: a\n> 2: b\n  3: c\n  --\n  6: f\n> 7: B b\n  8: h\n\ndocs/2:\n> 1: b"
    )


@given(st.lists(st.sampled_from(["", "a", "b", "ab", "ba"]), min_size=1, max_size=40), st.integers(0, 3))
@example([*["b"] * 21, "", "a"], 2)
def test_every_page_size_finds_the_same(every: list[str], context: int) -> None:
    text = "\n".join(every)
    found = {grep("b", text, lines=lines, context=context)[1] for lines in (1, 2, 7, 99)}
    assert len(found) == 1
    shown = [number for number, line in enumerate(filter(None, every), 1) if "b" in line][:MOST_MATCHES]
    assert [int(line[1:].partition(":")[0]) for line in found.pop().split("\n") if line.startswith(">")] == shown


def test_an_answer_says_how_to_go_on() -> None:
    text = "\n".join(f"match {number}" for number in range(1, 46))
    told = grep("match", text, context=0)[1]
    assert told.startswith("Found 45 matches in 1 files for pattern: 'match'; matches 1 to 20 are shown.\n\ndocs/0:")
    assert told.count(">") == MOST_MATCHES
    assert told.endswith("[Go on with offset=20.]")
    told = grep("match", text, context=0, skip=40)[1]
    assert (
        told
        == "Found 45 matches in 1 files for pattern: 'match'; matches 41 to 45 are shown.\n\ndocs/0:\n"
        + "\n".join(f"> {number}: match {number}" for number in range(41, 46))
    )
    none_left = "Found 45 matches in 1 files for pattern: 'match'; none after the first 45."
    assert grep("match", text, skip=45)[1] == none_left
    assert grep("none", text)[1] == "No matches found for pattern: 'none'"


def test_long_lines_are_shown_around_the_match_and_long_answers_end() -> None:
    told = grep("needle", "x" * 5_000 + "needle" + "y" * 5_000)[1]
    assert "xneedley" in told
    assert len(told) < 500
    told = grep("x", "\n".join(["x" * 300] * 400), context=10)[1]
    assert len(told) < 45_000
    assert "[Go on with offset=" in told


@pytest.mark.parametrize("pattern", ["^b$", "b", "[^a]", r"[b-z]", r"b\b", "x*b", "(b)|(c)", "b.*"])
def test_a_pattern_matches_within_a_line(pattern: str) -> None:
    assert grep(pattern, "a\nb\na")[0].match_count == 1


def test_a_pattern_that_matches_nothing_does_so_once_a_line() -> None:
    assert grep("x*", "a\n\nb")[0].match_count == 2
    assert grep(r"a\nb", "a\nb")[0].match_count == 0


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=a)b", "knows neither lookahead, lookbehind nor backreferences"),
        (r"(a)\1", "knows neither lookahead, lookbehind nor backreferences"),
        ("[", "is not a valid regular expression: missing ]"),
        ("a)(b", "is not a valid regular expression"),
        ("(a{1000}){1000}", "is not a valid regular expression"),
        ("", "has 1 to 1000 characters, not 0"),
        ("a" * 1_001, "has 1 to 1000 characters, not 1001"),
    ],
)
def test_what_is_no_pattern_is_told(pattern: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        compile_pattern(pattern, "pattern")
    assert said in refused.value.message


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "(x*)*y", "(x|xx)+$y", "(.*)(.*)(.*)(.*)y"])
def test_no_pattern_takes_long(pattern: str) -> None:
    began = time.process_time()
    assert grep(pattern, "x" * 16_000, "x" * 16_000)[0].match_count == 0
    assert time.process_time() - began < 5


def test_a_search_ends_in_time_and_says_so() -> None:
    search = Grep(compile_pattern("x", "pattern"))
    assert not search.search([("docs/0", page) for page in pages("x", 1)], time.monotonic() - 1)
    assert "The time was up after 3 of 9 files" in render_result(search, "x", looked=3, files=9, whole=False)
    search.match_count, search.file_count = 4, 2
    assert "Found at least 4 matches in 2 files" in render_result(search, "x", looked=3, files=9, whole=False)


@pytest.mark.parametrize(
    ("include", "paths"),
    [
        ("*.md", ["docs/a.md", "docs/sub/C.MD"]),
        ("docs/*", ["docs/a.md", "docs/b.py", "docs/sub/C.MD"]),
        ("docs/?.py", ["docs/b.py"]),
        ("a.md", ["docs/a.md"]),
        (r"\.(py|md)$", ["docs/a.md", "docs/b.py", "docs/sub/C.MD"]),
        ("^docs/.*py", ["docs/b.py"]),
        ("other", []),
    ],
)
def test_files_are_named_by_a_glob_or_a_regular_expression(include: str, paths: list[str]) -> None:
    pattern = compile_include(include)
    assert [path for path in ("docs/a.md", "docs/b.py", "docs/sub/C.MD") if pattern.search(path)] == paths
