"""Forms of replies as models and servers make them, apart from how any dialect writes them down.

A form is what was said, in the pieces in which it was said, how it ended, and what was told of it. odd_streams.py
writes each in every dialect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

End = Literal["stop", "calls", "length", "filter", "unsaid", "cut"]


@dataclass(frozen=True, slots=True)
class OddCall:
    """A call; `pieces` are its arguments as they come. An `id` of None is not sent."""

    name: str = "f"
    pieces: tuple[str, ...] = ('{"x":1}',)
    id: str | None = "call_a"

    @property
    def arguments(self) -> str:
        """The whole arguments."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Form:
    """A reply. `end`: unsaid is a stream that ends without a reason for it, cut is one that just stops. `error_after`:
    how many pieces come before an error does, None without one. `usage` False: nobody counts. `noise`: between the
    pieces stands what nobody knows, or nothing.
    """

    texts: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    calls: tuple[OddCall, ...] = ()
    end: End = "stop"
    usage: bool = True
    error_after: int | None = None
    noise: bool = False


HALF, OTHER_HALF = "\ud83d", "\ude00"
FORMS: Mapping[str, Form] = {
    "a word": Form(("Hi",)),
    "words": Form(("Hi", " there", ",", " you")),
    "letters": Form(tuple("Hello, world")),
    "empty pieces": Form(("", "Hi", "", "", " there", "")),
    "an emoji in halves": Form(("Hi " + HALF, OTHER_HALF + "!")),
    "halves over three pieces": Form((HALF, OTHER_HALF + HALF, OTHER_HALF)),
    "a lonely first half": Form(("Hi " + HALF, " there")),
    "a lonely half at the end": Form(("Hi ", HALF)),
    "a lonely second half": Form(("Hi", OTHER_HALF + " there")),
    "ends of lines of every kind": Form(("a\u2028b", "\u2029c\u0085d\r\ne\rf\n\ng",)),
    "NUL": Form(("a\0", "b")),
    "control characters": Form(("\x01\x1b[0m", "\x7f")),
    "letters of every width": Form(("aß", "漢字", "\U0001f600", "e\u0301")),
    "right to left": Form(("\u202eabc", "\u05d0\u05d1")),
    "blanks": Form(("  ", "\n\n", "\t")),
    "blanks around words": Form(("\n\nHi", "  \n")),
    "JSON": Form(('{"a": [1, ', '{"b": null}]}')),
    "what looks like an event": Form(("data: x\n\n", "event: error\ndata: {}\n\n")),
    "what looks like the end": Form(("[DONE]", "\n", "data: [DONE]\n\n")),
    "what looks like a call": Form(('{"name": "f", ', '"arguments": {}}')),
    "tags further on": Form(("Use <think>", "x</think> so")),
    "quotes and backslashes": Form(('"\\', '\\"\\u0041', "\\n")),
    "a long text": Form(("word " * 2_000, "ß" * 3_000)),
    "many pieces": Form(tuple(f"{number} " for number in range(300))),
    "thoughts": Form(("Four.",), ("two and ", "two")),
    "thoughts alone": Form((), ("hm", "m")),
    "thoughts with halves": Form(("ok",), ("a" + HALF, OTHER_HALF + "b")),
    "long thoughts": Form(("ok",), ("because " * 1_000,) * 3),
    "a call": Form(calls=(OddCall(),), end="calls"),
    "a call without arguments": Form(calls=(OddCall(pieces=("{}",)),), end="calls"),
    "a call in letters": Form(calls=(OddCall(pieces=tuple('{"x": "a b", "y": [1, 2]}')),), end="calls"),
    "two calls": Form(calls=(OddCall(), OddCall("g", ('{"y"', ": 2}"), "call_b")), end="calls"),
    "five calls of one tool": Form(
        calls=tuple(OddCall("f", (f'{{"n": {number}}}',), f"call_{number}") for number in range(5)), end="calls"
    ),
    "the same call twice under two ids": Form(calls=(OddCall(), OddCall(id="call_b")), end="calls"),
    "two calls under one id": Form(calls=(OddCall(), OddCall("g", ('{"y": 2}',))), end="calls"),
    "a call without an id": Form(calls=(OddCall(id=None),), end="calls"),
    "text and a call": Form(("Let me see.",), calls=(OddCall(),), end="calls"),
    "thoughts, text and a call": Form(("Let me see.",), ("hm",), (OddCall(),), "calls"),
    "thoughts and a call": Form((), ("hm",), (OddCall(),), "calls"),
    "braces in arguments": Form(calls=(OddCall(pieces=('{"code": "if (a) {', "} else {", '}"}')),), end="calls"),
    "arguments in arguments": Form(calls=(OddCall(pieces=('{"a": {"b": {"c', '": [{}, {}]}}}')),), end="calls"),
    "an emoji of arguments in halves": Form(
        calls=(OddCall(pieces=('{"x": "' + HALF, OTHER_HALF + '"}')),), end="calls"
    ),
    "calls that end with stop": Form(calls=(OddCall(),)),
    "a text that is cut short": Form(("Once upon",), end="length"),
    "thoughts that are cut short": Form((), ("hm, so",), end="length"),
    "a filter": Form(("I ",), end="filter"),
    "no reason for the end": Form(("Hi", " there"), end="unsaid"),
    "no reason for the end of a call": Form(calls=(OddCall(),), end="unsaid"),
    "cut in a text": Form(("Hi", " th"), end="cut"),
    "cut in a call": Form(calls=(OddCall(pieces=('{"x"', ":1")),), end="cut"),
    "cut after nothing": Form((), end="cut"),
    "nothing to say": Form(()),
    "nothing but the limit": Form((), end="length"),
    "nobody counts": Form(("Hi",), usage=False),
    "nobody counts calls": Form(calls=(OddCall(),), end="calls", usage=False),
    "an error at once": Form(("Hi",), error_after=0),
    "an error in a text": Form(("Hi", " there", " you"), error_after=2),
    "an error after thoughts": Form(("Hi",), ("hm",), error_after=1),
    "an error in a call": Form(calls=(OddCall(pieces=('{"x"', ":1}")),), end="calls", error_after=1),
    "noise": Form(("Hi", " there"), ("hm",), (OddCall(),), "calls", noise=True),
}  # fmt: skip
