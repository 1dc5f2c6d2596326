# ruff: noqa: E501 - a text a line
"""Texts that are not UTF-8."""

import pytest

from services.memory.files.parsing.text import assumed_charset, decode


@pytest.mark.parametrize(
    "text",
    [
        "id;name\n1;Mu\u00f1oz",
        "\u201chello\u201d it\u2019s",
        "Ein K\u00e4tzchen schl\u00e4ft auf dem gro\u00dfen Sofa.",
        "na\u00efve caf\u00e9 \u2014 d\u00e9j\u00e0 vu",
        "Prix : 5 \u20ac",
        "50 \u00b0C \u00b1 2 \u00b5m",
        "\u00d1and\u00fa, El Ni\u00f1o \u00bfqu\u00e9?",
        "\u00ff",
    ],
)
def test_short_western_texts(text: str) -> None:
    data = text.encode("cp1252")
    assert decode(data) == text
    assert assumed_charset(data) == "windows-1252"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u041a\u0430\u043a \u0434\u0435\u043b\u0430?", "cp1251"),
        ("Za\u017c\u00f3\u0142\u0107 g\u0119\u015bl\u0105 ja\u017a\u0144, to jest polski tekst. Prosz\u0119, dzi\u0119kuj\u0119.", "cp1250"),
        ("\u65e5\u672c\u8a9e\u306e\u30c6\u30ad\u30b9\u30c8\u3067\u3059", "shift_jis"),
        ("\u4e2d\u6587\u6587\u672c\u5728\u8fd9\u91cc", "gbk"),
    ],
)  # fmt: skip
def test_others_are_told_by_their_letters(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text
    assert assumed_charset(text.encode(encoding)) not in ("", "windows-1252")


@pytest.mark.parametrize(
    "data", [b"", b"plain", "M\u00fcller \U0001f600".encode(), b"\xef\xbb\xbfx", "\ufeffx".encode("utf-16-le")]
)
def test_nothing_is_assumed_where_it_is_said(data: bytes) -> None:
    assert assumed_charset(data) == ""
