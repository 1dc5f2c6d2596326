"""Thoughts and tool calls in the plain text of a model, as the Hermes and Qwen families write them. Pure.

<think>two and two</think>So: <tool_call> {"name": "add", "arguments": {"a": 2, "b": 2}} </tool_call>

A call is given out when it is whole: until its JSON has ended it may be no call, and then it is text, given as it
stands. Of text, only what may become a tag or the space before one is held back. Space around calls and after thoughts
is dropped. However the text is cut, the same comes out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_THINK, _THOUGHT = "<think>", "</think>"


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Text for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ThoughtPiece:
    """Text that the model wrote to itself."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A call; `arguments_json` is what the model wrote, without its space."""

    name: str
    arguments_json: str


Piece: TypeAlias = TextPiece | ThoughtPiece | CallPiece


class ToolText:
    """The parser of a text, which is fed in any pieces. `calls`: look for tool calls. `opening`: what stood already at
    the end of the prompt, and so is not repeated by the model.
    """

    def __init__(self, *, calls: bool, opening: str = "") -> None:
        self._calls = calls
        self._rest = opening
        # Which rule reads what comes next.
        self._read = self._start
        # Space that is text only if text follows.
        self._space = ""
        # Of a call in the making: what is not part of the object, and how far the object was read.
        self._object = _Object()
        self._before = ""

    def feed(self, text: str) -> list[Piece]:
        """Returns the pieces that are certain with this text."""
        self._rest += text
        return list(self._pieces(ended=False))

    def close(self) -> list[Piece]:
        """Returns the pieces that are left at the end of the reply."""
        pieces = list(self._pieces(ended=True))
        if self._space and self._read == self._text:
            pieces.append(TextPiece(self._space))
        return pieces

    def _pieces(self, *, ended: bool) -> Iterator[Piece]:
        while True:
            rule, size = self._read, len(self._rest)
            yield from rule(ended)
            if self._read == rule and len(self._rest) == size:
                return

    def _start(self, ended: bool) -> Iterator[Piece]:
        """Thoughts stand only at the beginning."""
        begun = self._rest.lstrip()
        if begun.startswith(_THINK):
            self._rest, self._read = begun[len(_THINK) :], self._thought
        elif ended or not _THINK.startswith(begun):
            self._read = self._text
        yield from ()

    def _thought(self, ended: bool) -> Iterator[Piece]:
        self._rest = self._rest.lstrip()
        if self._rest:
            self._read = self._thinking
        yield from ()

    def _thinking(self, ended: bool) -> Iterator[Piece]:
        thought, mark, after = self._rest.partition(_THOUGHT)
        if mark:
            self._rest, self._read = after, self._after
        elif ended:
            self._rest = ""
        else:
            thought, self._rest = certain(self._rest, _THOUGHT)
        thought = self._space + thought
        stripped = thought.rstrip()
        self._space = "" if mark or ended else thought[len(stripped) :]
        if stripped:
            yield ThoughtPiece(stripped)

    def _after(self, ended: bool) -> Iterator[Piece]:
        """Space after thoughts and calls is none of the text."""
        self._rest = self._rest.lstrip()
        if self._rest:
            self._read = self._text
        yield from ()

    def _text(self, ended: bool) -> Iterator[Piece]:
        if not self._calls:
            text, self._rest = self._rest, ""
            if text:
                yield TextPiece(text)
            return
        text, mark, after = self._rest.partition(OPEN)
        if mark:
            self._rest, self._read, self._before = after, self._opened, OPEN
        elif ended:
            self._rest = ""
        else:
            text, self._rest = certain(self._rest, OPEN)
        stripped = text.rstrip()
        if stripped:
            yield TextPiece(self._space + stripped)
            self._space = ""
        self._space += text[len(stripped) :]

    def _opened(self, ended: bool) -> Iterator[Piece]:
        """After the tag, an object; anything else is text, and so was the tag."""
        inside = self._rest.lstrip()
        if inside:
            self._before += self._rest[: len(self._rest) - len(inside)]
            self._rest = inside
            if inside.startswith("{"):
                self._object, self._read = _Object(), self._inside
            else:
                yield from self._no_call("")
        elif ended:
            yield from self._no_call("")

    def _inside(self, ended: bool) -> Iterator[Piece]:
        end = self._object.end_in(self._rest)
        if end is None:
            if ended:
                yield from self._no_call("")
            return
        written, self._rest = self._rest[:end], self._rest[end:]
        call = _call_of(written)
        if call is None:
            yield from self._no_call(written)
            return
        self._space, self._read = "", self._called
        yield call

    def _no_call(self, written: str) -> Iterator[Piece]:
        text, self._before, self._read = self._before + written, "", self._text
        yield TextPiece(self._space + text)
        self._space = ""

    def _called(self, ended: bool) -> Iterator[Piece]:
        """The closing tag, which some leave out; another object is another call."""
        rest = self._rest.lstrip()
        if rest.startswith(CLOSE):
            self._rest, self._read = rest[len(CLOSE) :], self._after
        elif rest.startswith("{"):
            self._rest, self._object, self._read, self._before = rest, _Object(), self._inside, ""
        elif rest and (ended or not CLOSE.startswith(rest)):
            self._read = self._after
        yield from ()


class _Object:
    """Finds the end of a JSON object in a text that grows, reading each character once."""

    def __init__(self) -> None:
        self._at = self._depth = 0
        self._in_string = self._escaped = False

    def end_in(self, text: str) -> int | None:
        """Returns where it ends; None: not yet."""
        for at in range(self._at, len(text)):
            character = text[at]
            if self._in_string:
                if self._escaped:
                    self._escaped = False
                elif character == "\\":
                    self._escaped = True
                elif character == '"':
                    self._in_string = False
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if not self._depth:
                    return at + 1
        self._at = len(text)
        return None


def _call_of(written: str) -> CallPiece | None:
    try:
        value: Any = orjson.loads(written)
    except orjson.JSONDecodeError:
        return None
    name = value.get("name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or not name:
        return None
    return CallPiece(name, arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode())


def certain(text: str, mark: str) -> tuple[str, str]:
    """Returns the text before a possible beginning of `mark` at its end, and that beginning."""
    for size in range(min(len(text), len(mark) - 1), 0, -1):
        if mark.startswith(text[-size:]):
            return text[:-size], text[-size:]
    return text, ""
