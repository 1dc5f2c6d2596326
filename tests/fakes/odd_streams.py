"""The forms of odd_forms.py in each dialect: the events of a stream, their frames, and the same reply whole.

    odd = DIALECTS["anthropic"]
    frames = odd.frames(FORMS["two calls"])       # bytes, one for each event
    body = odd.whole(FORMS["two calls"])          # the JSON of a blocking reply

Values are JSON written as JavaScript writes it, with halves of characters as escapes.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.fakes.bedrock_wire import frame as aws_frame
from tests.fakes.odd_forms import Form, OddCall

Json = dict[str, Any]
MODEL = "m-1"
_USAGE = (9, 3)
ERROR = "the model is gone"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a form is written. `events` yields the events of a stream, without an error or an end that breaks it off.
    `cut_ends`: what a stream that just stops has in any case.
    """

    name: str
    pieces: Callable[[Form], Iterator[Json]]
    ends: Callable[[Form], Iterator[Json]]
    whole: Callable[[Form], Json]
    error: Callable[[], Json]
    frame: Callable[[Json], bytes]
    last: bytes = b""
    noise: tuple[bytes, ...] = ()

    def frames(self, form: Form) -> list[bytes]:
        """Returns the frames of a stream, one for each event."""
        said = list(self.pieces(form))
        if form.error_after is not None:
            return [*map(self.frame, said[: form.error_after]), self.frame(self.error())]
        frames = [self.frame(one) for one in said]
        if form.noise:
            frames = [part for one in frames for part in (*self.noise, one)]
        if form.end == "cut":
            return frames
        return [*frames, *map(self.frame, self.ends(form)), *([self.last] if self.last else [])]


def _json(value: Any) -> bytes:
    """As JavaScript's JSON.stringify, halves of characters escaped."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def _sse(value: Json) -> bytes:
    return b"data: " + _json(value) + b"\n\n"


def _named(value: Json) -> bytes:
    return f"event: {value['type']}\n".encode() + _sse(value)


def _line(value: Json) -> bytes:
    return _json(value) + b"\n"


# Chat Completions -------------------------------------------------------------------------------------------------

_CHAT_ENDS = {"stop": "stop", "calls": "tool_calls", "length": "length", "filter": "content_filter", "unsaid": None}


def _chat_call(number: int, call: OddCall, arguments: str, *, head: bool) -> Json:
    named = {"name": call.name} if head else {}
    identified = {"id": call.id, "type": "function"} if head and call.id is not None else {}
    return {"index": number, **identified, "function": {**named, "arguments": arguments}}


def _chat_pieces(form: Form) -> Iterator[Json]:
    def chunk(**delta: Any) -> Json:
        return {"id": "r1", "model": MODEL, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    yield from (chunk(reasoning_content=text) for text in form.thoughts)
    yield from (chunk(content=text) for text in form.texts)
    for number, call in enumerate(form.calls):
        yield chunk(tool_calls=[_chat_call(number, call, "", head=True)])
        yield from (chunk(tool_calls=[_chat_call(number, call, piece, head=False)]) for piece in call.pieces)


def _chat_usage(form: Form) -> Json:
    prompt, completion = _USAGE
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": completion}} if form.usage else {}


def _chat_ends(form: Form) -> Iterator[Json]:
    yield {"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": _CHAT_ENDS[form.end]}]}
    if form.usage:
        yield {"id": "r1", "choices": [], **_chat_usage(form)}


def _chat_whole(form: Form) -> Json:
    calls = [_chat_call(number, call, call.arguments, head=True) for number, call in enumerate(form.calls)]
    message = {"role": "assistant", "content": "".join(form.texts), "reasoning_content": "".join(form.thoughts)}
    choice = {"message": {**message, **({"tool_calls": calls} if calls else {})}, "finish_reason": _CHAT_ENDS[form.end]}
    return {"id": "r1", "model": MODEL, "choices": [choice], **_chat_usage(form)}


# Responses --------------------------------------------------------------------------------------------------------


def _response_items(form: Form) -> list[Json]:
    items: list[Json] = []
    if form.thoughts:
        summary = [{"type": "summary_text", "text": "".join(form.thoughts)}]
        items.append({"type": "reasoning", "id": "rs_1", "summary": summary})
    if form.texts:
        content = [{"type": "output_text", "text": "".join(form.texts)}]
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "content": content})
    for number, call in enumerate(form.calls):
        named = {} if call.id is None else {"call_id": call.id}
        items.append(
            {"type": "function_call", "id": f"fc_{number}", **named, "name": call.name, "arguments": call.arguments}
        )
    return items


def _response_pieces(form: Form) -> Iterator[Json]:
    items = _response_items(form)
    for place, item in enumerate(items):
        match item["type"]:
            case "reasoning":
                yield {"type": "response.output_item.added", "output_index": place, "item": {**item, "summary": []}}
                for text in form.thoughts:
                    delta = {"type": "response.reasoning_summary_text.delta", "output_index": place}
                    yield {**delta, "summary_index": 0, "delta": text}
            case "message":
                yield {"type": "response.output_item.added", "output_index": place, "item": {**item, "content": []}}
                for text in form.texts:
                    delta = {"type": "response.output_text.delta", "output_index": place, "content_index": 0}
                    yield {**delta, "delta": text}
            case _:
                call = form.calls[int(item["id"][3:])]
                yield {"type": "response.output_item.added", "output_index": place, "item": {**item, "arguments": ""}}
                for piece in call.pieces:
                    delta = {"type": "response.function_call_arguments.delta", "output_index": place}
                    yield {**delta, "item_id": item["id"], "delta": piece}
        yield {"type": "response.output_item.done", "output_index": place, "item": item}


def _response(form: Form) -> Json:
    reasons = {"length": "max_output_tokens", "filter": "content_filter"}
    details = {"incomplete_details": {"reason": reasons[form.end]}} if form.end in reasons else {}
    status = "incomplete" if details else "completed"
    prompt, completion = _USAGE
    usage = {"usage": {"input_tokens": prompt, "output_tokens": completion}} if form.usage else {}
    return {"id": "r1", "model": MODEL, "status": status, **details, "output": _response_items(form), **usage}


def _response_ends(form: Form) -> Iterator[Json]:
    response = _response(form)
    yield {"type": f"response.{response['status']}", "response": response}


# Anthropic --------------------------------------------------------------------------------------------------------

_ANTHROPIC_ENDS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "filter": "refusal", "unsaid": None}


def _anthropic_blocks(form: Form) -> Iterator[tuple[Json, Json, list[Json]]]:
    """Yields the beginning of a block, the whole of it, and its deltas."""
    if form.thoughts:
        deltas = [{"type": "thinking_delta", "thinking": text} for text in form.thoughts]
        yield {"type": "thinking", "thinking": ""}, {"type": "thinking", "thinking": "".join(form.thoughts)}, deltas
    if form.texts:
        deltas = [{"type": "text_delta", "text": text} for text in form.texts]
        yield {"type": "text", "text": ""}, {"type": "text", "text": "".join(form.texts)}, deltas
    for call in form.calls:
        head = {"type": "tool_use", "name": call.name, **({} if call.id is None else {"id": call.id})}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in call.pieces]
        yield {**head, "input": {}}, {**head, "input": _object(call)}, deltas


def _object(call: OddCall) -> Any:
    """The arguments where a dialect has an object; of a call that is cut off, none."""
    try:
        return json.loads(call.arguments)
    except json.JSONDecodeError:
        return {}


def _anthropic_pieces(form: Form) -> Iterator[Json]:
    for index, (head, _, deltas) in enumerate(_anthropic_blocks(form)):
        yield {"type": "content_block_start", "index": index, "content_block": head}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}


def _anthropic_usage(form: Form) -> Json:
    prompt, completion = _USAGE
    return {"usage": {"input_tokens": prompt, "output_tokens": completion}} if form.usage else {}


def _anthropic_ends(form: Form) -> Iterator[Json]:
    yield {"type": "message_delta", "delta": {"stop_reason": _ANTHROPIC_ENDS[form.end]}, **_anthropic_usage(form)}
    yield {"type": "message_stop"}


def _anthropic_whole(form: Form) -> Json:
    content = [whole for _, whole, _ in _anthropic_blocks(form)]
    stop = {"stop_reason": _ANTHROPIC_ENDS[form.end]}
    return {"type": "message", "id": "r1", "model": MODEL, "content": content, **stop, **_anthropic_usage(form)}


# Google -----------------------------------------------------------------------------------------------------------

_GOOGLE_ENDS = {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "filter": "SAFETY", "unsaid": "OTHER"}


def _google_chunk(*parts: Json, **more: Any) -> Json:
    content = {"content": {"role": "model", "parts": list(parts)}} if parts else {}
    return {"responseId": "r1", "modelVersion": MODEL, "candidates": [{**content, **more}]}


def _google_parts(form: Form) -> Iterator[Json]:
    yield from ({"text": text, "thought": True} for text in form.thoughts)
    yield from ({"text": text} for text in form.texts)
    for call in form.calls:
        identified = {} if call.id is None else {"id": call.id}
        yield {"functionCall": {**identified, "name": call.name, "args": _object(call)}}


def _google_pieces(form: Form) -> Iterator[Json]:
    yield from map(_google_chunk, _google_parts(form))


def _google_usage(form: Form) -> Json:
    prompt, completion = _USAGE
    return {"usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": completion}} if form.usage else {}


def _google_ends(form: Form) -> Iterator[Json]:
    yield {**_google_chunk(finishReason=_GOOGLE_ENDS[form.end]), **_google_usage(form)}


def _google_whole(form: Form) -> Json:
    return {**_google_chunk(*_google_parts(form), finishReason=_GOOGLE_ENDS[form.end]), **_google_usage(form)}


# Bedrock ----------------------------------------------------------------------------------------------------------

_BEDROCK_ENDS = {
    "stop": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "filter": "content_filtered",
    "unsaid": "",
}


def _bedrock_blocks(form: Form) -> Iterator[tuple[Json | None, Json, list[Json]]]:
    if form.thoughts:
        whole = {"reasoningContent": {"reasoningText": {"text": "".join(form.thoughts)}}}
        yield None, whole, [{"reasoningContent": {"text": text}} for text in form.thoughts]
    if form.texts:
        yield None, {"text": "".join(form.texts)}, [{"text": text} for text in form.texts]
    for call in form.calls:
        head = {"name": call.name, "toolUseId": call.id or ""}
        deltas = [{"toolUse": {"input": piece}} for piece in call.pieces]
        yield {"toolUse": head}, {"toolUse": {**head, "input": _object(call)}}, deltas


def _bedrock_pieces(form: Form) -> Iterator[Json]:
    for index, (head, _, deltas) in enumerate(_bedrock_blocks(form)):
        if head is not None:
            yield {"contentBlockStart": {"contentBlockIndex": index, "start": head}}
        yield from ({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}} for delta in deltas)
        yield {"contentBlockStop": {"contentBlockIndex": index}}


def _bedrock_usage(form: Form) -> Json:
    prompt, completion = _USAGE
    return {"usage": {"inputTokens": prompt, "outputTokens": completion}} if form.usage else {}


def _bedrock_ends(form: Form) -> Iterator[Json]:
    yield {"messageStop": {"stopReason": _BEDROCK_ENDS[form.end]}}
    yield {"metadata": {"metrics": {"latencyMs": 1}, **_bedrock_usage(form)}}


def _bedrock_whole(form: Form) -> Json:
    message = {"role": "assistant", "content": [whole for _, whole, _ in _bedrock_blocks(form)]}
    return {"output": {"message": message}, "stopReason": _BEDROCK_ENDS[form.end], **_bedrock_usage(form)}


def _bedrock_frame(event: Json) -> bytes:
    ((name, said),) = event.items()
    kind = "exception" if name.endswith("Exception") else "event"
    headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
    return aws_frame(headers, _json(said))


# Ollama -----------------------------------------------------------------------------------------------------------

_OLLAMA_ENDS = {"stop": "stop", "calls": "stop", "length": "length", "filter": "stop", "unsaid": ""}


def _ollama_call(call: OddCall) -> Json:
    identified = {} if call.id is None else {"id": call.id}
    return {**identified, "function": {"name": call.name, "arguments": _object(call)}}


def _ollama_pieces(form: Form) -> Iterator[Json]:
    def line(**message: Any) -> Json:
        return {"model": MODEL, "message": {"role": "assistant", "content": "", **message}, "done": False}

    yield from (line(thinking=text) for text in form.thoughts)
    yield from (line(content=text) for text in form.texts)
    yield from (line(tool_calls=[_ollama_call(call)]) for call in form.calls)


def _ollama_end(form: Form) -> Json:
    prompt, completion = _USAGE
    counts = {"prompt_eval_count": prompt, "eval_count": completion} if form.usage else {}
    return {"model": MODEL, "done": True, "done_reason": _OLLAMA_ENDS[form.end], **counts}


def _ollama_ends(form: Form) -> Iterator[Json]:
    yield {**_ollama_end(form), "message": {"role": "assistant", "content": ""}}


def _ollama_whole(form: Form) -> Json:
    message = {"role": "assistant", "content": "".join(form.texts), "thinking": "".join(form.thoughts)}
    return {**_ollama_end(form), "message": {**message, "tool_calls": list(map(_ollama_call, form.calls))}}


_SSE_NOISE = (b": keep-alive\n\n", b"\n\n", b"id: 7\nretry: 10\n\n", b"data:\n\n")
DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "chat completions",
            _chat_pieces,
            _chat_ends,
            _chat_whole,
            lambda: {"error": {"message": ERROR, "code": 503}},
            _sse,
            b"data: [DONE]\n\n",
            (*_SSE_NOISE, _sse({"id": "r1", "choices": []}), _sse({"id": "r1", "choices": [{"delta": None}]})),
        ),
        Dialect(
            "responses",
            _response_pieces,
            _response_ends,
            _response,
            lambda: {"type": "error", "code": "server_error", "message": ERROR},
            _named,
            b"",
            (*_SSE_NOISE, _named({"type": "response.unheard_of", "x": 1})),
        ),
        Dialect(
            "anthropic",
            _anthropic_pieces,
            _anthropic_ends,
            _anthropic_whole,
            lambda: {"type": "error", "error": {"type": "overloaded_error", "message": ERROR}},
            _named,
            b"",
            (*_SSE_NOISE, _named({"type": "ping"}), _named({"type": "unheard_of"})),
        ),
        Dialect(
            "google",
            _google_pieces,
            _google_ends,
            _google_whole,
            lambda: {"error": {"code": 503, "message": ERROR, "status": "UNAVAILABLE"}},
            _sse,
            b"",
            (*_SSE_NOISE, _sse({"responseId": "r1"}), _sse({"candidates": [{"content": {}}]})),
        ),
        Dialect(
            "bedrock",
            _bedrock_pieces,
            _bedrock_ends,
            _bedrock_whole,
            lambda: {"serviceUnavailableException": {"message": ERROR}},
            _bedrock_frame,
            b"",
            (_bedrock_frame({"unheardOf": {"x": 1}}), _bedrock_frame({"messageStart": {"role": "assistant"}})),
        ),
        Dialect(
            "ollama",
            _ollama_pieces,
            _ollama_ends,
            _ollama_whole,
            lambda: {"error": ERROR},
            _line,
            b"",
            (b"\n", b"  \r\n", _line({"model": MODEL, "message": None, "done": False})),
        ),
    )
}
