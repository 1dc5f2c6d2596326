"""A history as the `system` and `messages` of Bedrock's Converse API, with cache points. Pure."""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolCall,
    ToolResult,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.vendors.anthropic.translate import arguments_of
from services.llm_gateway.vendors.bedrock.profiles import ModelProfile
from services.llm_gateway.vendors.shared import call_ids
from services.llm_gateway.vendors.shared.call_ids import with_valid_ids
from services.llm_gateway.vendors.shared.origins import BEDROCK, own_value
from services.llm_gateway.vendors.shared.turns import alternating, instructions

CACHE_POINT = {"cachePoint": {"type": "default"}}
_FORMATS = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_MARKED_ENDS = 2


def system_of(request: ChatRequest, profile: ModelProfile) -> list[dict[str, Any]]:
    """Returns the instructions, with a cache point behind them."""
    blocks: list[dict[str, Any]] = [{"text": text} for text in instructions(request.messages)]
    return [*blocks, CACHE_POINT] if blocks and "system" in profile.marks else blocks


def conversation(
    request: ChatRequest, profile: ModelProfile, *, thoughts: bool, note: str = ""
) -> list[dict[str, Any]]:
    """Returns the messages; `thoughts`: with the model's own, and at the end `note`, behind the last cache point."""
    messages = with_valid_ids(request.messages, call_ids.ANTHROPIC)

    def blocks_of(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
        return _blocks(parts, profile, request.handle, thoughts=thoughts)

    turns = alternating(messages, blocks_of, lambda block: "toolResult" in block, lambda text: {"text": text})
    users = [turn["content"] for turn in turns if turn["role"] == "user"]
    if "messages" in profile.marks:
        for content in users[-_MARKED_ENDS:]:
            # Others than Claude take one behind text alone.
            if profile.claude or "text" in content[-1]:
                content.append(CACHE_POINT)
    if note and users:
        users[-1].append({"text": note})
    return turns


def calls_in(messages: Iterable[Message]) -> list[str]:
    """Returns the names of the tools that were called, each once."""
    parts = (part for message in messages for part in message.parts)
    return list(dict.fromkeys(part.name for part in parts if isinstance(part, ToolCall)))


def _blocks(parts: Iterable[Part], profile: ModelProfile, handle: str, *, thoughts: bool) -> Iterator[dict[str, Any]]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield {"text": part.text}
            case Image():
                yield {"image": _image(part, handle)}
            case Reasoning():
                if thoughts and (signature := own_value(profile.signed_by, part.signature)):
                    yield {"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}
            case RedactedReasoning():
                if thoughts and (data := own_value(BEDROCK, part.data)):
                    yield {"reasoningContent": {"redactedContent": data}}
            case ToolCall():
                yield {"toolUse": {"toolUseId": part.id, "name": part.name, "input": arguments_of(part)}}
            case ToolResult():
                yield {"toolResult": _result(part, profile, handle)}
            case _:
                assert_never(part)


def _image(image: Image, handle: str) -> dict[str, Any]:
    if image.url:
        raise LlmBadRequest(
            f"{handle} takes images by value alone: Bedrock fetches none. Send the picture's bytes instead of its URL.",
            handle=handle,
        )
    kind = _FORMATS.get(image.media_type.lower())
    if kind is None:
        known = ", ".join(sorted(set(_FORMATS.values())))
        raise LlmBadRequest(f"{handle} takes images as {known}, not {image.media_type!r}.", handle=handle)
    return {"format": kind, "source": {"bytes": image.data}}


def _result(result: ToolResult, profile: ModelProfile, handle: str) -> dict[str, Any]:
    content = list(_blocks(result.content, profile, handle, thoughts=False)) or [{"text": "(no output)"}]
    fields: dict[str, Any] = {"toolUseId": result.tool_call_id, "content": content}
    return {**fields, "status": "error"} if result.is_error and profile.tells_failures else fields


def schema_fragment(parameters_json: str) -> dict[str, Any]:
    """Returns a tool's schema where the wire wants it."""
    return {"json": orjson.Fragment(parameters_json)}
