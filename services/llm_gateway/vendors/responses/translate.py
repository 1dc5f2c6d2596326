"""The neutral chat as a request of OpenAI's Responses, whose history is a list of items. Pure.

Nothing is stored at the vendor: thoughts come back encrypted, and go back so. They belong to their vendor (`origin`,
see origins.py); those of another, and those that no text or call of the same message follows, are left out, because
such a request is refused.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.thinking import effort_of
from services.llm_gateway.vendors.openai.profiles import profile_of
from services.llm_gateway.vendors.openai.translate import reply_schema, spelt_effort, strict_schemas
from services.llm_gateway.vendors.shared import call_ids, schemas
from services.llm_gateway.vendors.shared.call_ids import with_valid_ids
from services.llm_gateway.vendors.shared.model_settings import OPENAI, own_settings
from services.llm_gateway.vendors.shared.origins import own_value

# Who speaks it takes the schemas that OpenAI takes.
DIALECT = profile_of("openai", is_vendor=True)
# The API refuses a lower limit and a longer key.
_LEAST_OUTPUT = 16
_LONGEST_CACHE_KEY = 64
_MODES = {ToolMode.REQUIRED: "required", ToolMode.NONE: "none"}
# What the count of tokens takes of a request.
_COUNTED = ("model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a request that an endpoint may refuse: earlier thoughts, and the wish for a summary of new ones."""

    thoughts: bool = True
    summary: bool = True


def body_of(request: ChatRequest, model: ChatModel, origin: str, terms: Terms = Terms()) -> dict[str, Any]:
    """Returns the request's body, but for `stream`. Raises LlmBadRequest, LlmSchemaRefused."""
    instructions, items = items_of(request, origin, thoughts=terms.thoughts)
    body: dict[str, Any] = {"model": model.name, "input": items, "store": False}
    if instructions:
        body["instructions"] = instructions
    if request.tools:
        strict = strict_schemas(request, DIALECT)
        body["tools"] = [_tool(tool, strict.get(tool.name)) for tool in request.tools]
        body |= _tool_choice(request, model)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = max(_LEAST_OUTPUT, request.max_output_tokens)
    if request.cache_key:
        body["prompt_cache_key"] = _cache_key(request.cache_key)
    return body | _settings(request, model, terms) | _token_details(request, model)


def count_body_of(request: ChatRequest, model: ChatModel, origin: str) -> bytes:
    """Returns the body whose input tokens are counted."""
    body = body_of(request, model, origin)
    return orjson.dumps({name: body[name] for name in _COUNTED if name in body})


def items_of(request: ChatRequest, origin: str, *, thoughts: bool = True) -> tuple[str, list[dict[str, Any]]]:
    """Returns the instructions (a leading system message), and the items of all other messages."""
    messages, instructions = request.messages, ""
    if messages and messages[0].role is Role.SYSTEM:
        instructions = "\n".join(part.text for part in messages[0].parts if isinstance(part, Text))
        messages = messages[1:] if instructions else messages
    messages = with_valid_ids(messages, call_ids.OPENAI)
    return instructions, [item for message in messages for item in message_items(message, request, origin, thoughts)]


def message_items(
    message: Message, request: ChatRequest, origin: str, thoughts: bool = True
) -> Iterator[dict[str, Any]]:
    """Yields the items of one message, in the order of its parts."""
    match message.role:
        case Role.SYSTEM:
            yield {"type": "message", "role": "developer", "content": _content(message.parts)}
        case Role.USER:
            yield {"type": "message", "role": "user", "content": _content(message.parts)}
        case Role.ASSISTANT:
            yield from _assistant(message.parts, origin, thoughts=thoughts)
        case Role.TOOL:
            for part in message.parts:
                if not isinstance(part, ToolResult):
                    raise LlmBadRequest("a tool message may hold tool results only", handle=request.handle)
                yield {"type": "function_call_output", "call_id": part.tool_call_id, "output": _output(part.content)}
        case _:
            assert_never(message.role)


def _assistant(parts: Sequence[Part], origin: str, *, thoughts: bool) -> Iterator[dict[str, Any]]:
    held: list[dict[str, Any]] = []
    message: dict[str, Any] | None = None  # the message that texts are put into
    for part in parts:
        match part:
            case Text():
                if not part.text:
                    continue
                yield from held
                held = []
                phase = own_value(origin, part.signature)
                if message is None or message.get("phase") != phase:
                    if message is not None:
                        yield message
                    message = {"type": "message", "role": "assistant", "content": []}
                    message |= {"phase": phase} if phase else {}
                message["content"].append({"type": "output_text", "text": part.text})
            case Reasoning() | RedactedReasoning():
                if (item := _thought(part, origin)) is not None and thoughts:
                    if message is not None:
                        yield message
                    message = None
                    held.append(item)
            case ToolCall():
                if message is not None:
                    yield message
                message = None
                yield from held
                held = []
                call = {"type": "function_call", "call_id": part.id, "name": part.name}
                yield {**call, "arguments": part.arguments_json}
            case Image() | ToolResult():
                pass
            case _:
                assert_never(part)
    if message is not None:
        yield message


def _thought(part: Reasoning | RedactedReasoning, origin: str) -> dict[str, Any] | None:
    """Returns the item that the thoughts were; see replies.seal."""
    signature, text = (part.signature, part.text) if isinstance(part, Reasoning) else (part.data, "")
    id, mark, encrypted = (own_value(origin, signature) or "").partition(":")
    if not mark or not encrypted:
        return None
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}


def _output(content: Sequence[Text | Image]) -> str | list[dict[str, Any]]:
    """Returns a string where there is only text: older servers know nothing else."""
    if all(isinstance(part, Text) for part in content):
        return "\n".join(part.text for part in content if isinstance(part, Text))
    return _content(content)


def _content(parts: Iterable[Part]) -> list[dict[str, Any]]:
    return [_content_part(part) for part in parts if isinstance(part, Text | Image)]


def _content_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "input_text", "text": part.text}
    return {"type": "input_image", "image_url": part.address, "detail": part.detail or "auto"}


def _tool(tool: ToolSpec, strict: str | None) -> dict[str, Any]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": orjson.Fragment(strict or schemas.plain_json(tool.parameters_json)),
        # Without the word the API takes every schema as strict.
        "strict": strict is not None,
    }


def _tool_choice(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    choice = request.tool_choice
    fields: dict[str, Any] = {}
    if isinstance(choice, str):
        fields["tool_choice"] = {"type": "function", "name": choice}
    elif choice in _MODES:
        fields["tool_choice"] = _MODES[choice]
    if request.parallel_tool_calls is False and model.capabilities.parallel_tool_calls:
        # True is the default, and models that never do it refuse the parameter.
        fields["parallel_tool_calls"] = False
    return fields


def _settings(request: ChatRequest, model: ChatModel, terms: Terms) -> dict[str, Any]:
    """Returns the fields of the settings; seed, stop words and penalties have no place here."""
    can, settings = model.capabilities, own_settings(request.settings, OPENAI, request.handle)
    fields: dict[str, Any] = {name: settings[name] for name in ("service_tier",) if name in settings}
    if can.reasoning:
        effort = effort_of(request.settings, model)
        reasoning = {"effort": spelt_effort(effort, model.base_model or model.name)} if effort else {}
        reasoning |= {"summary": "auto"} if terms.summary else {}
        fields |= {"include": ["reasoning.encrypted_content"]} | ({"reasoning": reasoning} if reasoning else {})
    if can.temperature:
        fields |= {"top_p": settings["top_p"]} if "top_p" in settings else {}
        fields |= {} if request.temperature is None else {"temperature": request.temperature}
    text = {} if request.response_format is None else {"format": _format(request.response_format, request.handle)}
    if "verbosity" in settings:
        text["verbosity"] = settings["verbosity"]
    return fields | ({"text": text} if text else {})


def _format(format: ResponseFormat, handle: str) -> dict[str, Any]:
    return {"type": "json_object"} if format.schema is None else {"type": "json_schema", **reply_schema(format, handle)}


def _token_details(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    """Returns the fields for log probabilities, which reasoning models refuse."""
    if not (request.logprobs or request.token_ids) or model.capabilities.reasoning:
        return {}
    top = {"top_logprobs": request.top_logprobs} if request.top_logprobs else {}
    return {"include": ["message.output_text.logprobs"], **top}


def _cache_key(key: str) -> str:
    return key if len(key) <= _LONGEST_CACHE_KEY else hashlib.sha256(key.encode()).hexdigest()
