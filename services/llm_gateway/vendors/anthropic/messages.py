"""A history as the `system` and `messages` of Anthropic's Messages API, with marks for its cache. Pure.

At most four blocks of a request may be marked: the last tool (translate.py), the last instruction, and the ends of this
request's history and of the one before. With the last mark a turn reads from the cache what its former step wrote,
however many blocks have come since.
"""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolCall,
    ToolResult,
)
from services.llm_gateway.vendors.shared import call_ids
from services.llm_gateway.vendors.shared.call_ids import with_valid_ids
from services.llm_gateway.vendors.shared.origins import own_value
from services.llm_gateway.vendors.shared.turns import alternating, instructions

CACHE = {"type": "ephemeral"}
_MARKED_ENDS = 2


def system_of(request: ChatRequest) -> list[dict[str, Any]]:
    """Returns the instructions, marked so that they and the tools before them are cached by the provider."""
    blocks = [_text(text) for text in instructions(request.messages)]
    if blocks:
        blocks[-1] = {**blocks[-1], "cache_control": CACHE}
    return blocks


def conversation(request: ChatRequest, origin: str | None, note: str = "") -> list[dict[str, Any]]:
    """Returns the messages with `origin`'s own thoughts (None: with none), and at the end `note`, which is not
    cached.
    """
    messages = with_valid_ids(request.messages, call_ids.ANTHROPIC)
    turns = alternating(messages, lambda parts: _blocks(parts, origin), _is_result, _text)
    users = [turn["content"] for turn in turns if turn["role"] == "user"]
    for content in users[-_MARKED_ENDS:]:
        content[-1] = {**content[-1], "cache_control": CACHE}
    if note and users:
        users[-1].append(_text(note))
    return turns


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_result(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "tool_result")


def _blocks(parts: Iterable[Part], origin: str | None) -> Iterator[dict[str, Any]]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield _text(part.text)
            case Image():
                yield {"type": "image", "source": _source(part)}
            case Reasoning():
                if origin and (signature := own_value(origin, part.signature)):
                    yield {"type": "thinking", "thinking": part.text, "signature": signature}
            case RedactedReasoning():
                if origin and (data := own_value(origin, part.data)):
                    yield {"type": "redacted_thinking", "data": data}
            case ToolCall():
                yield {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part)}
            case ToolResult():
                yield _result(part)
            case _:
                assert_never(part)


def _source(image: Image) -> dict[str, Any]:
    if image.url:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.base64}


def arguments_of(call: ToolCall) -> Any:
    """Returns the arguments object. Text of the model that is no object is shown to it as text."""
    try:
        value = orjson.loads(call.arguments_json)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"unparsed_arguments": call.arguments_json}


def _result(result: ToolResult) -> dict[str, Any]:
    content = list(_blocks(result.content, None))
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    if content:
        fields["content"] = content
    return {**fields, "is_error": True} if result.is_error else fields
