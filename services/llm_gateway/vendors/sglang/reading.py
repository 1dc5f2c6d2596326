"""Readers of /generate: one finds the calls in the text itself, one has the server's parsers find them.

Text is streamed up to the mark at which a reply may begin to be a tool call (MARKS, by the names of SGLang's parsers);
the rest waits for the server's parser, which reads whole replies alone. Of a parser that is not there nothing is known,
and the whole reply waits.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Delta
from services.llm_gateway.core.refusals import status_in
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.sglang.replies import GenerateEvents, abort_reason
from services.llm_gateway.vendors.sglang.translate import parse_calls_body_of, separate_body_of
from services.llm_gateway.vendors.text.rendering import Prompt, offered_tools
from services.llm_gateway.vendors.text.text_reply import TextReply, call_id
from services.llm_gateway.vendors.text.tool_text import OPEN, Piece, TextPiece, ThoughtPiece, ToolText, certain

_DEEPSEEK = "<\uff5ctool\u2581calls\u2581begin\uff5c>"
MARKS: Mapping[str, str] = {
    "deepseekv3": _DEEPSEEK,
    "deepseekv31": _DEEPSEEK,
    "glm": OPEN,
    "glm45": OPEN,
    "glm47": OPEN,
    "hermes": OPEN,
    "kimi_k2": "<|tool_calls_section_begin|>",
    "mistral": "[TOOL_CALLS]",
    "qwen": OPEN,
    "qwen25": OPEN,
    "qwen3_coder": OPEN,
}


class Held:
    """The text of one reply: the part that may be streamed, and all of it."""

    def __init__(self, mark: str | None) -> None:
        self._mark = mark
        self._waiting = ""
        self._stopped = mark is None
        self.text = ""
        self.streamed = ""

    def feed(self, text: str) -> str:
        """Returns the part of it that is certainly no call."""
        self.text += text
        if self._stopped or self._mark is None:
            return ""
        before, mark, _ = (self._waiting + text).partition(self._mark)
        self._stopped = bool(mark)
        free, self._waiting = (before, "") if mark else certain(before, self._mark)
        self.streamed += free
        return free

    def rest(self, parsed: str) -> str:
        """Returns the part of the text, as the parser left it, that has not been streamed."""
        return parsed[len(self.streamed) :] if parsed.startswith(self.streamed) else ""


# (path, body) -> the reply.
Ask = Callable[[str, bytes], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Parsers:
    """The server's parsers for the model; "" for none."""

    calls: str = ""
    reasoning: str = ""


class _Reader(ReplyReader):
    """The part that both have in common."""

    def __init__(self, model_name: str) -> None:
        super().__init__(ReplyBuilder())
        self.builder.model = model_name
        self._generated = GenerateEvents(self.builder)

    def take_event(self, reply: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event."""
        if error := reply.get("error"):
            self.failure = status_in(error), reply
        elif (given_up := abort_reason(reply)) is not None:
            self.failure = int(given_up.get("status_code") or 500), reply
        else:
            self.began = True
            yield from self._take_text(self._generated.more(reply))

    def _take_text(self, text: str) -> Iterator[Delta]:
        """Reads more of the text."""
        raise NotImplementedError


class TextReader(_Reader):
    """The reader that finds calls by tool_text.py."""

    def __init__(self, request: ChatRequest, prompt: Prompt, model_name: str) -> None:
        super().__init__(model_name)
        self._text = TextReply(self.builder, calls=bool(offered_tools(request)), opening=prompt.opening)

    def _take_text(self, text: str) -> Iterator[Delta]:
        return self._text.add(text)

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close."""
        return self._text.end()


class ParsedReader(_Reader):
    """The reader that asks /separate_reasoning and /parse_function_call, once the whole reply has come. With a parser
    of thoughts nothing can be streamed before, with one of calls alone, what is certainly none.
    """

    def __init__(self, request: ChatRequest, prompt: Prompt, model_name: str, parsers: Parsers, ask: Ask) -> None:
        super().__init__(model_name)
        self._request, self._parsers, self._ask = request, parsers, ask
        self._opening = prompt.opening
        self._finds_calls = bool(offered_tools(request) and parsers.calls)
        mark = MARKS.get(parsers.calls) if self._finds_calls else "\0"
        self._held = Held(None if parsers.reasoning or prompt.opening else mark)
        # Thoughts are known here, unless the server is to find them.
        self._thoughts = None if parsers.reasoning or prompt.opening else ToolText(calls=False)

    def _take_text(self, text: str) -> Iterator[Delta]:
        yield from self._deltas([TextPiece(text)] if self._thoughts is None else self._thoughts.feed(text))

    def _deltas(self, pieces: Iterable[Piece]) -> Iterator[Delta]:
        for piece in pieces:
            if isinstance(piece, ThoughtPiece):
                yield self.builder.add_reasoning("thoughts", piece.text)
            elif isinstance(piece, TextPiece) and (free := self._held.feed(piece.text)):
                yield self.builder.add_text("text", free)

    async def last(self) -> Sequence[Delta]:
        """Has the server's parsers read the text; returns what they find. Raises LlmError."""
        deltas = list(self._deltas(self._thoughts.close() if self._thoughts else ()))
        text = self._opening + self._held.text
        if self._parsers.reasoning and text:
            reply = await self._ask("/separate_reasoning", separate_body_of(text, self._parsers.reasoning))
            text = reply.get("text") or ""
            if thoughts := reply.get("reasoning_text"):
                deltas.append(self.builder.add_reasoning("thoughts", thoughts))
        calls: Sequence[Mapping[str, Any]] = ()
        if self._finds_calls and text:
            body = parse_calls_body_of(self._request, text, self._parsers.calls)
            reply = await self._ask("/parse_function_call", body)
            text, calls = reply.get("normal_text") or "", reply.get("calls") or ()
        if rest := self._held.rest(text):
            deltas.append(self.builder.add_text("text", rest))
        for number, call in enumerate(calls):
            id = call_id(self.builder.response_id, number)
            deltas.append(self.builder.begin_call(("call", number), id, call.get("name") or ""))
            deltas.append(self.builder.add_arguments(("call", number), call.get("parameters") or "{}"))
        return deltas
