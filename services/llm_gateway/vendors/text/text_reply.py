"""A reply that comes as plain text, put into an ReplyBuilder: thoughts, text and calls each where they belong. Pure."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import assert_never

from services.llm_gateway.core.chat import Delta
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.text.tool_text import CallPiece, Piece, TextPiece, ThoughtPiece, ToolText


class TextReply:
    """The reply as text: it is fed in pieces, then ended. `calls`: tools were offered; `opening` is Prompt.opening."""

    def __init__(self, builder: ReplyBuilder, *, calls: bool, opening: str = "") -> None:
        self._builder = builder
        self._text = ToolText(calls=calls, opening=opening)
        self._number = 0

    def add(self, text: str) -> Iterator[Delta]:
        """Yields the deltas that are certain with this text."""
        return self._take(self._text.feed(text))

    def end(self) -> Iterator[Delta]:
        """Yields the deltas that are left."""
        return self._take(self._text.close())

    def _take(self, pieces: Iterable[Piece]) -> Iterator[Delta]:
        builder = self._builder
        for piece in pieces:
            match piece:
                case TextPiece():
                    yield builder.add_text(("text", self._number), piece.text)
                case ThoughtPiece():
                    yield builder.add_reasoning("thoughts", piece.text)
                case CallPiece():
                    # Text after a call is another part than text before it.
                    self._number += 1
                    key = ("call", self._number)
                    yield builder.begin_call(key, call_id(builder.response_id, self._number), piece.name)
                    yield builder.add_arguments(key, piece.arguments_json)
                case _:
                    assert_never(piece)


def call_id(response_id: str, number: int) -> str:
    """Returns the id of a call: text holds none. The same reply has the same ids; "" where it has none itself."""
    return f"call_{sha256(f'{response_id}/{number}'.encode()).hexdigest()[:24]}" if response_id else ""
