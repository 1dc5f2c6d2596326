"""The words of texts, in scripts with and without spaces."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("?! --", []),
        ("Hello, World_Wide 42!", ["hello", "world", "wide", "42"]),
        ("don't x-ray ada@lovelace.org", ["don", "t", "x", "ray", "ada", "lovelace", "org"]),
        ("Zürich CAFÉ naïve Fluß", ["zurich", "cafe", "naive", "fluss"]),
        ("cafe\u0301", ["cafe"]),
        ("Ｆｕｌｌ ﬁne", ["full", "fine"]),
        ("ПРИВЕТ мир", ["привет", "мир"]),
        ("हिन्दी", ["हिन्दी"]),
        ("東京", ["東", "東京", "京"]),
        ("東京x y", ["東", "東京", "京", "x", "y"]),
        ("한국", ["한", "한국", "국"]),
        ("a" * 101, ["a" * 100]),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert words.index_words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("the cat, the dog", ["the", "cat", "dog"]), ("東京", ["東京"]), ("漢", ["漢"]), ("CAFÉ", ["cafe"])],
)
def test_words_of_a_query(text: str, expected: list[str]) -> None:
    assert words.query_words(text) == expected


def test_a_query_has_a_most_of_words() -> None:
    assert len(words.query_words(" ".join(f"w{number}" for number in range(1_000)))) == 64


@given(st.text(max_size=200))
def test_what_a_text_is_asked_by_is_among_its_words(text: str) -> None:
    assert set(words.query_words(text)) <= set(words.index_words(text))


def test_a_long_text_is_cut_into_pieces_between_words() -> None:
    text = "two words\n" * 20_000
    assert words.index_words(text) == ["two", "words"] * 20_000


def test_many_texts_have_the_words_of_each() -> None:
    texts = ["two words"] * 1_000 + ["漢字" * 10_000, "", "x" * 5_000]
    assert words.index_words_of_all(texts) == [words.index_words(text) for text in texts]


def test_others_run_while_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cuts them pauses, for an event loop that waits for the interpreter: after 1,024 words, or some texts."""
    pauses: list[float] = []
    monkeypatch.setattr(words, "time", SimpleNamespace(sleep=pauses.append))
    assert len(words.index_words("some words of a language " * 40_000)) == 200_000
    assert len(pauses) == 200_000 // 1_024
    pauses.clear()
    assert len(words.index_words_of_all(["two words"] * 1_000)) == 1_000
    assert len(pauses) == 2
