"""The history of a chat as the messages of Chat Completions, as each vendor wants them. Pure.

Thoughts of earlier turns go back where the vendor takes them, each in its own form; elsewhere they are left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, assert_never

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.openai.details import details_of
from services.llm_gateway.vendors.openai.profiles import Thoughts, VendorProfile
from services.llm_gateway.vendors.shared.call_ids import with_valid_ids

_CACHE = {"type": "ephemeral"}
_ONLY_TEXT = {Text}


def messages_of(request: ChatRequest, model: ChatModel, vendor: VendorProfile, note: str = "") -> list[dict[str, Any]]:
    """Returns the messages; `note` is added to the instructions. Raises LlmBadRequest for a tool message with anything
    but results.
    """
    messages = with_valid_ids(request.messages, vendor.ids)
    result: list[dict[str, Any]] = []
    for message, original in zip(messages, request.messages, strict=True):
        if vendor.speaks_after_results and message.role is Role.USER and result and result[-1]["role"] == "tool":
            result.append({"role": "assistant", "content": "."})
        result += _message(message, original, request.handle, model, vendor)
    if note:
        result = _with_note(result, note)
    if vendor.cache_marks is not None and vendor.cache_marks.match(model.name):
        _mark_ends(result)
    return result


def _message(
    message: Message, original: Message, handle: str, model: ChatModel, vendor: VendorProfile
) -> Iterable[dict[str, Any]]:
    match message.role:
        case Role.SYSTEM:
            return ({"role": "system", "content": joined_text(message.parts)},)
        case Role.USER:
            return ({"role": "user", "content": _content(message.parts)},)
        case Role.ASSISTANT:
            return (_assistant(message, original, model, vendor),)
        case Role.TOOL:
            return _tool_results(message.parts, handle, vendor)
        case _:
            assert_never(message.role)


def _assistant(message: Message, original: Message, model: ChatModel, vendor: VendorProfile) -> dict[str, Any]:
    calls = [
        {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments_json}}
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    content: Any = joined_text(message.parts)
    thoughts = _thoughts(message, original, vendor, calls=bool(calls))
    if (
        vendor.thoughts is Thoughts.PARTS
        and model.capabilities.reasoning
        and (text := _unsigned_thoughts(message.parts))
    ):
        content = [_thinking(text), *([{"type": "text", "text": content}] if content else [])]
    message_out = {"role": "assistant", "content": (content or None) if calls else content, **thoughts}
    return {**message_out, "tool_calls": calls} if calls else message_out


def _thoughts(message: Message, original: Message, vendor: VendorProfile, *, calls: bool) -> dict[str, Any]:
    if vendor.thoughts is Thoughts.FIELD:
        thoughts = _unsigned_thoughts(message.parts) or (vendor.placeholder if calls else None)
        return (
            {}
            if thoughts is None or (not thoughts and vendor.placeholder is None)
            else {vendor.thoughts_field: thoughts}
        )
    if vendor.thoughts is Thoughts.DETAILS:
        pairs = zip(original.parts, message.parts, strict=True)
        ids = {old.id: new.id for old, new in pairs if isinstance(old, ToolCall) and isinstance(new, ToolCall)}
        details = details_of(message.parts, ids)
        return {"reasoning_details": details} if details else {}
    return {}


def _unsigned_thoughts(parts: Iterable[Part]) -> str:
    """Returns thoughts in the clear without a signature: with one they are another dialect's."""
    return "\n".join(part.text for part in parts if isinstance(part, Reasoning) and not part.signature)


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _tool_results(parts: Iterable[Part], handle: str, vendor: VendorProfile) -> Iterator[dict[str, Any]]:
    """Yields a message per result; where results hold only text, their pictures follow in a user message."""
    pictures: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolResult):
            raise LlmBadRequest("a tool message may hold tool results only", handle=handle)
        fields = {"role": "tool", "tool_call_id": part.tool_call_id}
        if vendor.result_pictures:
            yield {**fields, "content": _content(part.content)}
            continue
        images = [item for item in part.content if isinstance(item, Image)]
        pictures += images
        text = joined_text(part.content)
        note = f"({len(images)} picture(s) in the next message)" if images else ""
        yield {**fields, "content": f"{text}\n{note}".strip() if note else text}
    if pictures:
        yield {"role": "user", "content": _content(pictures)}


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """Returns a plain string where there is only text: older compatible servers know nothing else."""
    if set(map(type, parts)) <= _ONLY_TEXT:
        return joined_text(parts)
    return [_content_part(part) for part in parts if isinstance(part, Text | Image)]


def _content_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    return {"type": "image_url", "image_url": {"url": part.address} | ({"detail": part.detail} if part.detail else {})}


def joined_text(parts: Iterable[Part]) -> str:
    """Returns the texts among the parts, a line each."""
    return "\n".join([part.text for part in parts if isinstance(part, Text)])


def _with_note(messages: list[dict[str, Any]], note: str) -> list[dict[str, Any]]:
    if messages and messages[0]["role"] == "system":
        return [{**messages[0], "content": f"{messages[0]['content']}\n\n{note}"}, *messages[1:]]
    return [{"role": "system", "content": note}, *messages]


def _mark_ends(messages: list[dict[str, Any]]) -> None:
    """Marks the instructions, which stay, and the newest message, so that the next step reads all before it from the
    cache."""
    ends = {index for index, message in enumerate(messages) if message["role"] == "system"}
    newest = [index for index, message in enumerate(messages) if message["role"] in ("user", "tool")]
    for index in sorted(ends | set(newest[-1:])):
        messages[index] = _with_mark(messages[index])


def _with_mark(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not content:
        return dict(message)
    return {**message, "content": [*parts[:-1], {**parts[-1], "cache_control": _CACHE}]}
