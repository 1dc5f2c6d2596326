"""Ollama's replies, whole or as the lines of a stream, as the neutral chat. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta, FinishReason, Usage
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.core.token_estimates import estimate

# "load" and "unload" answer an empty chat; versions before 0.1.45 give no reason.
_FINISH = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}


class Reader(ReplyReader):
    """Reads one reply. `prompt_size` is the request's length in bytes."""

    def __init__(self, builder: ReplyBuilder, prompt_size: int) -> None:
        super().__init__(builder)
        self._prompt_size = prompt_size

    def take_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event."""
        if "error" in event:
            self.failure = 500, event
            return
        yield from take(self.builder, event, self._prompt_size)
        self.ended = self.builder.finish is not None


def take(builder: ReplyBuilder, body: Mapping[str, Any], prompt_size: int) -> Iterator[Delta]:
    """Reads a whole reply or one line of a stream: they have the same fields. `prompt_size` is the request's length in
    bytes, for the estimate where the server took the whole prompt from its cache and counts none.
    """
    message = body.get("message") or {}
    if thoughts := message.get("thinking"):
        yield builder.add_reasoning("thinking", thoughts)
    if text := message.get("content"):
        yield builder.add_text("text", text)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        key = object()  # every call comes whole
        yield builder.begin_call(key, call.get("id") or "", function.get("name") or "")
        yield builder.add_arguments(key, _arguments(function.get("arguments")))
    if logprobs := body.get("logprobs"):
        builder.tokens.add_logprobs({"content": logprobs})
    builder.model = body.get("model") or builder.model
    if body.get("done"):
        builder.finish = _FINISH.get(body.get("done_reason") or "stop", FinishReason.UNKNOWN)
        builder.usage = _usage(body, prompt_size)


def _arguments(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments or {}).decode()


def _usage(body: Mapping[str, Any], prompt_size: int) -> Usage | None:
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
