"""Ollama's replies, whole or as the lines of a stream, as the neutral chat. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta, FinishReason, Usage
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.core.token_estimates import estimate
from services.llm_gateway.vendors.shared.text_thoughts import OFF, TextThoughts

# "load" and "unload" answer an empty chat; versions before 0.1.45 give no reason.
_FINISH = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class Reader(ReplyReader):
    """Reads one reply. `prompt_size` is the request's length in bytes, `text` reads its text, where thoughts may be in
    that."""

    def __init__(self, builder: ReplyBuilder, prompt_size: int, text: TextThoughts | None = None) -> None:
        super().__init__(builder)
        self._prompt_size = prompt_size
        self._text = TextThoughts(builder, OFF) if text is None else text
        self._calls: set[tuple[str, str, str]] = set()

    def take_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event."""
        if "error" in event:
            self.failure = 500, event
            return
        # A whole reply and a line of a stream have the same fields.
        builder, message = self.builder, event.get("message") or {}
        if thoughts := message.get("thinking"):
            self._text.leave()
            yield builder.add_reasoning("reasoning", thoughts)
        if text := message.get("content"):
            yield from self._text.add(text)
        for call in message.get("tool_calls") or ():
            yield from self._take_call(call)
        if logprobs := event.get("logprobs"):
            builder.tokens.add_logprobs({"content": logprobs})
        builder.model = event.get("model") or builder.model
        if event.get("done"):
            builder.finish = _FINISH.get(event.get("done_reason") or "stop", FinishReason.UNKNOWN)
            builder.usage = _usage(event, self._prompt_size)
        self.ended = builder.finish is not None

    def _take_call(self, call: Mapping[str, Any]) -> Iterator[Delta]:
        """Every call comes whole; one with an id that comes again is not called again."""
        function, id = call.get("function") or {}, call.get("id") or ""
        said = (id, function.get("name") or "", _arguments(function.get("arguments")))
        if id and said in self._calls:
            return
        self._calls.add(said)
        yield from self._text.end()
        key = object()
        yield self.builder.begin_call(key, *said[:2])
        yield self.builder.add_arguments(key, said[2])

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close."""
        return self._text.end()


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()


def _usage(body: Mapping[str, Any], prompt_size: int) -> Usage | None:
    """Returns the usage; a server that took the whole prompt from its cache counts none, and it is estimated."""
    prompt, completion = body.get("prompt_eval_count"), body.get("eval_count")
    if completion is None:
        return None
    if prompt is None:
        return Usage(estimate(prompt_size), completion, estimated=True)
    return Usage(prompt, completion)


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in an error body: {"error": "..."}; behind a gateway also OpenAI's object or plain text."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or ""
    return Refusal(status, str(error or ""))
