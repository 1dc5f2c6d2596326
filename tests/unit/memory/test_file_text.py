"""Kinds of files, pages of lines, and the pieces of a page."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from services.common.core.refusals import Refused
from services.memory.core.file_text.kinds import BY_EXTENSION, FileFormat, SplitMode, kind_of, of_media_type, sniff_kind
from services.memory.core.file_text.pages import (
    LONGEST_LINE,
    LONGEST_PAGE,
    chunks_of,
    join_pages,
    line_cuts,
    pages_of,
    storable,
    trim,
)
from services.memory.files.model import TextPage
from services.memory.files.parsing.splitting import cuts
from services.memory.files.parsing.text import decode
from services.memory.files.parsing.unreadable import Unreadable


@pytest.mark.parametrize(
    ("name", "media_type", "expected"),
    [
        ("a.PDF", "", BY_EXTENSION["pdf"]),
        ("a.py", "application/octet-stream", BY_EXTENSION["py"]),
        ("Dockerfile", "", BY_EXTENSION["dockerfile"]),
        ("v1.0/Dockerfile", "", BY_EXTENSION["dockerfile"]),
        # A name is asked first, what the client says after it.
        ("a.md", "application/pdf", BY_EXTENSION["md"]),
        ("report", "application/pdf; x=1", BY_EXTENSION["pdf"]),
        ("page", "text/html", BY_EXTENSION["html"]),
        ("notes", "text/plain", BY_EXTENSION["txt"]),
        ("a.xyz", "", None),
        ("py", "", BY_EXTENSION["py"]),
        ("a.png", "image/png", None),
    ],
)
def test_a_kind_is_known_by_name_or_type(name: str, media_type: str, expected: object) -> None:
    assert kind_of(name, media_type) == expected


def test_the_table_of_kinds() -> None:
    assert len(BY_EXTENSION) >= 48
    assert {kind.format for kind in BY_EXTENSION.values()} == set(FileFormat)
    # A stored file is read as what it was taken in as, by its name or its type alone.
    for extension, kind in BY_EXTENSION.items():
        assert of_media_type(f"a.{extension}", kind.media_type) == kind
        assert of_media_type("without", kind.media_type).format == kind.format
    assert sniff_kind("LICENSE", b"Copyright") == of_media_type("LICENSE", "text/plain")
    assert sniff_kind("wide", "wide".encode("utf-16")).format is FileFormat.TEXT
    assert sniff_kind("paper", b"%PDF-1.7\n\0") == BY_EXTENSION["pdf"]
    for name, head, media_type in (
        ("a", b"\x7fELF\0\0", ""),
        ("a", b"{\\rtf1\\ansi", ""),
        ("x.exe", b"MZ", "text/plain"),
        ("v1.0/y.zip", b"PK", "application/octet-stream"),
        ("a.q", b"text", "application/x-msdownload"),
        ("a.q", b"text", "image/png"),
    ):
        with pytest.raises(Refused) as error:
            sniff_kind(name, head, media_type)
        assert error.value.reason == "FILE_TYPE_UNSUPPORTED"
    for name, media_type in (("a.q", "application/octet-stream"), ("v1.0/notes", ""), ("a.q", "application/ld+json")):
        assert sniff_kind(name, b"text", media_type).format is FileFormat.TEXT


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Grüße".encode(), "Grüße"),
        ("Grüße".encode("utf-8-sig"), "Grüße"),
        ("Grüße".encode("utf-16"), "Grüße"),
        ("Grüße".encode("utf-32"), "Grüße"),
        ("Some wide text".encode("utf-16-le"), "Some wide text"),
        ("Some wide text".encode("utf-16-be"), "Some wide text"),
        (b"", ""),
    ],
)
def test_texts_are_decoded(data: bytes, text: str) -> None:
    assert decode(data) == text


def test_bytes_in_no_encoding_are_told() -> None:
    with pytest.raises(Unreadable, match="save it as UTF-8"):
        decode(bytes(range(256)) * 40)


def test_what_is_stored_has_newlines_alone() -> None:
    assert storable("a\r\nb\rc\0\ud800\n\n ") == ("a\nb\nc\ufffd", "\n\n ")
    assert storable("a" + "\n" * 5_000) == ("a", "\n" * 1_000)


@pytest.mark.parametrize("seed", range(30))
def test_pages_hold_whole_lines_and_together_the_whole_text(seed: int) -> None:
    chance = random.Random(seed)
    longest = chance.choice((5, 200, 3 * LONGEST_LINE))
    lines = ["x" * int(chance.random() ** 3 * longest) for _ in range(chance.choice((0, 1, 30, 3_000)))]
    text, _ = storable("\n".join(lines))
    pages = list(pages_of(text))
    assert join_pages(pages) == text
    assert [page.page for page in pages] == list(range(len(pages)))
    line = 0
    for page in pages:
        visible = page.text.split("\n")
        assert (page.first_line, page.last_line) == (line + 1, line + sum(map(bool, visible)))
        assert len(page.text) <= LONGEST_PAGE
        assert all(len(one) <= LONGEST_LINE for one in visible)
        assert not page.continued or len(visible) == 1
        line = page.last_line


def test_a_page_ends_at_a_blank_line_or_before_a_heading() -> None:
    body = ["w" * 99] * 150
    for mark, ends in ((["", "next"], ""), (["# Heading"], "w" * 99)):
        first = next(pages_of("\n".join([*body, *mark, *body])))
        assert first.text.split("\n")[-1] == ends
        assert first.last_line == 150


def test_the_pieces_of_a_page_know_their_lines() -> None:
    text = "one\n\ntwo\nthree\n\nfour"
    page = TextPage(page=3, first_line=11, last_line=14, text=text, first_place=7, cuts=((0, 3), (5, 14), (16, 20)))
    assert [(piece.place, piece.first_line, piece.last_line, piece.text) for piece in chunks_of(page)] == [
        (7, 11, 11, "one"),
        (8, 12, 13, "two\nthree"),
        (9, 14, 14, "four"),
    ]
    assert chunks_of(replace(page, cuts=())) == []
    assert chunks_of(replace(page, cuts=((0, 3), (0, 3))))[1].first_line == 11


@pytest.mark.parametrize("split_mode", SplitMode)
@pytest.mark.parametrize("seed", range(10))
def test_pieces_have_all_words_once_and_are_not_too_long(split_mode: SplitMode, seed: int) -> None:
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(2_000)]
    text, _ = storable("".join(word + chance.choice((" ", " ", " ", "\n", ". ", "\n\n", "\n# ")) for word in words))
    pieces = [text[start:end] for start, end in cuts(text, split_mode)]
    assert " ".join(pieces).replace("#", "").replace(".", "").split() == words
    assert max(map(len, pieces)) <= 1_800
    assert len(pieces) < 3 * len(text) / 1_000
    assert all(piece.rstrip() == piece for piece in pieces)


def test_rows_stay_whole_and_long_ones_are_cut() -> None:
    rows = [f"{number},{'x' * 90}" for number in range(100)]
    text = "\n".join(rows)
    pieces = [text[slice(*cut)].strip("\n") for cut in line_cuts(text, 500)]
    assert [row for piece in pieces for row in piece.split("\n")] == rows
    assert [len(text[slice(*cut)]) for cut in line_cuts("x" * 1_200, 500)] == [500, 500, 200]
    # A blank line in the last half ends a piece.
    assert line_cuts("a" * 60 + "\n\n" + "b" * 60, 100)[0] == (0, 62)


def test_blank_edges_and_what_says_nothing_are_no_part_of_a_piece() -> None:
    assert trim("\n\n  a\n \n", 0, 8) == (2, 5)
    assert cuts("----\n\n****", SplitMode.LINES) == ()
