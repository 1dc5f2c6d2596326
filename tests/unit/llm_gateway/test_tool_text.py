"""Thoughts and calls in text, whole and in pieces."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.vendors.text.tool_text import CallPiece, Piece, TextPiece, ThoughtPiece, ToolText

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'
ADD = CallPiece("add", '{"a":2}')


def joined(pieces: Iterable[Piece]) -> Sequence[Piece]:
    made: list[Piece] = []
    for piece in pieces:
        last = made[-1] if made else None
        if isinstance(piece, TextPiece) and isinstance(last, TextPiece):
            made[-1] = TextPiece(last.text + piece.text)
        elif isinstance(piece, ThoughtPiece) and isinstance(last, ThoughtPiece):
            made[-1] = ThoughtPiece(last.text + piece.text)
        else:
            made.append(piece)
    return made


def read(*chunks: str, calls: bool = True, opening: str = "") -> Sequence[Piece]:
    reader = ToolText(calls=calls, opening=opening)
    return joined([piece for chunk in chunks for piece in reader.feed(chunk)] + reader.close())


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello there. ", [TextPiece("Hello there. ")]),
        (CALL, [ADD]),
        (f"So:\n\n{CALL}\n{CALL}\n", [TextPiece("So:"), ADD, ADD]),
        (f"{CALL} and on", [ADD, TextPiece("and on")]),
        (f"<think>\ntwo and two\n</think>\n\nSo: {CALL}", [ThoughtPiece("two and two"), TextPiece("So:"), ADD]),
        ("<think>no end", [ThoughtPiece("no end")]),
        ("it says <think> here", [TextPiece("it says <think> here")]),
        # Several in one pair of tags, no closing tag, older names of fields.
        ('<tool_call>{"name":"a"}{"name":"b"}</tool_call>', [CallPiece("a", "{}"), CallPiece("b", "{}")]),
        ('<tool_call>{"name":"a","parameters":{"x":[1]}}', [CallPiece("a", '{"x":[1]}')]),
        # A tag in an argument ends nothing; what is no call is text.
        (
            '<tool_call>{"name":"a","arguments":{"x":"</tool_call>}"}}</tool_call>',
            [CallPiece("a", '{"x":"</tool_call>}"}')],
        ),
        ("<tool_call>later</tool_call>", [TextPiece("<tool_call>later</tool_call>")]),
        ('<tool_call>{"name": }</tool_call>!', [TextPiece('<tool_call>{"name": }</tool_call>!')]),
        ('<tool_call>\n{"name":"a', [TextPiece('<tool_call>\n{"name":"a')]),
        ("", []),
    ],
)
def test_what_is_read(text: str, pieces: Sequence[Piece]) -> None:
    assert read(text) == pieces
    assert read(*text) == pieces


def test_text_is_not_held_back_and_calls_are_not_looked_for_without_tools() -> None:
    reader = ToolText(calls=True)
    assert reader.feed("Hello ") == [TextPiece("Hello")]
    assert reader.feed("you <tool") == [TextPiece(" you")]
    assert reader.feed("box") == [TextPiece(" <toolbox")]
    assert read(CALL, calls=False) == [TextPiece(CALL)]


def test_what_the_prompt_ended_with_is_part_of_the_call() -> None:
    opening = '<tool_call>\n{"name": "add", "arguments": '
    assert read('{"a": 2}}\n</tool_call>', opening=opening) == [ADD]


_TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool", "<"]
_CALLS = ['{"name":"f","arguments":{"x":"</tool_call>"}}', '{"name": "g"}', "{", "}", '"', "\\", "[1]"]
_FRAGMENTS = st.sampled_from([*_TAGS, *_CALLS, "\n", " ", "one ", "two and two ", " \n x", "é"])


@given(st.lists(_FRAGMENTS, max_size=14), st.booleans(), st.data())
def test_any_cut_gives_the_same(fragments: list[str], calls: bool, data: st.DataObject) -> None:
    text = "".join(fragments)
    whole = read(text, calls=calls)
    assert read(*text, calls=calls) == whole
    cut = data.draw(st.integers(0, len(text)))
    assert read(text[:cut], text[cut:], calls=calls) == whole


@given(st.text(alphabet=st.characters(blacklist_characters="<", blacklist_categories=["Cs"])))
def test_plain_text_comes_through(text: str) -> None:
    said = "".join(piece.text for piece in read(text) if isinstance(piece, TextPiece))
    # Text of space alone is kept, too.
    assert said == text
