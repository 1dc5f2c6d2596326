"""Thoughts that come in the text of a reply, put where thoughts belong. Pure.

<think>two and two</think>\\n\\nFour

Servers without a parser for their model pass its tags on. Only a reply that begins with thoughts is read so: tags
further on are what somebody writes about. Many templates write the opening tag themselves, so that the reply begins
inside of the thoughts and only `</think>` comes. Until then it looks like an answer, and is streamed as one; the
message says what it was, and the next reply of that model is streamed as thoughts from its beginning. However the text
is cut, the same message comes out.
"""

from collections.abc import Iterator, MutableSet

from services.llm_gateway.core.chat import Delta, FinishReason, Reasoning, Text
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.vendors.text.tool_text import certain

_MARKS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "[THINK]": "[/THINK]",
}
_OPEN, _CLOSE = "<think>", "</think>"
# Who writes about the tag sets it apart.
_QUOTES = "`'\"(\u201c\u2018"
# The option of a provider that says how its texts are read.
OPTION = "text_thoughts"
AUTO, OPEN, OFF = "auto", "open", "off"

_THOUGHTS, _TEXT, _ANSWER = "reasoning", "text", "answer"


class TextHabits:
    """How one provider's texts are read; what its models' replies have shown is remembered."""

    def __init__(self, way: str) -> None:
        self._way = way
        self._openers: set[str] = set()

    def reader(self, builder: ReplyBuilder, model: str) -> "TextThoughts":
        """Returns the reader of one reply of a model."""
        return TextThoughts(builder, self._way, self._openers, model)


class TextThoughts:
    """The reader of one reply's text. `way` is AUTO, OPEN or OFF; `openers` are the models whose replies are known to
    begin inside of thoughts, `model` is the one that is read."""

    def __init__(
        self, builder: ReplyBuilder, way: str = AUTO, openers: MutableSet[str] | None = None, model: str = ""
    ) -> None:
        self._builder = builder
        self._openers: MutableSet[str] = set() if openers is None else openers
        self._model = model
        # The tag that opens is missing, as it seems.
        self._is_open = way == OPEN or (way == AUTO and model in self._openers)
        self._rest = ""
        self._seen = ""
        self._close = _CLOSE
        self._read = self._plain if way == OFF else self._start
        self._key = _TEXT

    def add(self, text: str) -> Iterator[Delta]:
        """Yields what is certain with this text."""
        self._rest += text
        yield from self._deltas(ended=False)

    def leave(self) -> None:
        """Thoughts came in a field of their own: the text is what it seems."""
        if self._read == self._start:
            self._read = self._plain

    def end(self) -> Iterator[Delta]:
        """Yields what is left: something else follows, or nothing."""
        yield from self._deltas(ended=True)
        if self._read == self._begun and not (self._is_open and self._builder.finish is FinishReason.LENGTH):
            # The model did not think this time; unless it was cut off.
            self._settle()
        elif self._read != self._thinking:
            self._read = self._plain

    def _deltas(self, *, ended: bool) -> Iterator[Delta]:
        while True:
            rule, size = self._read, len(self._rest)
            yield from rule(ended)
            if self._read == rule and len(self._rest) == size:
                return

    def _start(self, ended: bool) -> Iterator[Delta]:
        begun = self._rest.lstrip()
        for mark, close in _MARKS.items():
            if begun.startswith(mark):
                self._rest, self._close, self._read = begun[len(mark) :], close, self._thought
                return
        if not ended and any(mark.startswith(begun) for mark in _MARKS):
            return
        self._read = self._begun
        yield from ()

    def _thought(self, ended: bool) -> Iterator[Delta]:
        self._rest = self._rest.lstrip()
        if self._rest:
            self._read = self._thinking
        yield from ()

    def _thinking(self, ended: bool) -> Iterator[Delta]:
        thought, mark, after = self._rest.partition(self._close)
        if mark:
            self._rest, self._read = after, self._after
        elif not ended:
            thought, self._rest = certain(self._rest, self._close)
        else:
            self._rest = ""
        kept = thought if ended and not mark else thought.rstrip()
        if not mark:
            self._rest = thought[len(kept) :] + self._rest
        if kept:
            yield self._builder.add_reasoning(_THOUGHTS, kept)

    def _after(self, ended: bool) -> Iterator[Delta]:
        """Space after thoughts is none of the answer."""
        self._rest = self._rest.lstrip()
        if self._rest:
            self._key, self._read = _ANSWER, self._plain
        yield from ()

    def _plain(self, ended: bool) -> Iterator[Delta]:
        text, self._rest = self._rest, ""
        if text:
            yield self._builder.add_text(self._key, text)

    def _begun(self, ended: bool) -> Iterator[Delta]:
        """Text in which a tag may show that all before it were thoughts."""
        text, mark, after = self._rest.partition(_CLOSE)
        closes = bool(mark) and (after != "" or ended) and self._closes(self._seen + text, after)
        if mark and not after and not ended:
            # What follows tells.
            self._rest = mark
        elif closes:
            self._rest, self._read = after, self._after
            self._openers.add(self._model)
        elif mark:
            text, self._rest, self._read = text + mark, after, self._plain
        elif ended:
            self._rest = ""
        else:
            text, self._rest = certain(self._rest, _CLOSE)
        if not (self._seen + text).strip() and (closes or not ended):
            # Space before anything else: it is of what comes.
            self._rest = self._rest if closes else text + self._rest
            return
        if text:
            self._seen += text
            yield self._say(text)
        if self._read == self._after:
            self._builder.turn_into(_TEXT, Reasoning)
        elif self._read == self._plain or _OPEN in self._seen[-len(text) - len(_OPEN) :]:
            self._settle()

    def _say(self, text: str) -> Delta:
        return self._builder.add_reasoning(_TEXT, text) if self._is_open else self._builder.add_text(_TEXT, text)

    def _closes(self, before: str, after: str) -> bool:
        """Returns whether a closing tag that no other opened ends thoughts: those who speak of it write on behind it,
        or quote it."""
        follows, precedes = after[:1], before[-1:]
        if (precedes and precedes in _QUOTES) or _OPEN in before:
            return False
        return follows in ("", "\n", "\r", "<", "{") or follows.isalnum()

    def _settle(self) -> None:
        """It is text, whatever was expected."""
        if self._is_open:
            self._builder.turn_into(_TEXT, Text)
        self._read = self._plain
