"""The neutral chat as Ollama's own /api/chat. Pure.

The context window. Ollama loads a model with the window that the request names in `options.num_ctx`, and without it
with a default of its own (4,096 tokens on most machines), whatever the model could take; what does not fit is cut away
without a word. So every request names the window that Loci counts with: the smaller of what the model was trained for
and of a num_ctx in its Modelfile, or what the operator says in LOCI_MODEL_WINDOWS, which is also the way to save memory
with models of long windows. `truncate` and `shift` are off, so that a newer server refuses what does not fit, where an
older one would cut it.

There is no choice of tools on this wire: for a named one it alone is offered, for none no tool is. Thoughts of earlier
turns are sent back only within a turn that calls tools, where models go on thinking.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reasoning,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel, EmbeddingModel
from services.llm_gateway.vendors.shared.model_settings import OLLAMA, own_settings

_OPTIONS = ("top_p", "top_k", "min_p", "seed", "stop", "frequency_penalty", "presence_penalty")
_ROLES = {Role.SYSTEM: "system", Role.USER: "user"}


def body_of(request: ChatRequest, model: ChatModel, *, stream: bool, keep_alive: str | int | None = None) -> bytes:
    """Returns the request's JSON. Raises LlmBadRequest for parts that this wire cannot carry."""
    settings = own_settings(request.settings, OLLAMA, request.handle)
    body: dict[str, Any] = {
        "model": model.name,
        "messages": list(_messages(request)),
        "stream": stream,
        "truncate": False,
        "shift": False,
        "options": _options(request, model, settings),
    }
    if tools := _tools(request):
        body["tools"] = [_tool(tool) for tool in tools]
    if request.response_format is not None:
        body["format"] = _format(request.response_format)
    if model.capabilities.reasoning and (think := _think(settings)) is not None:
        body["think"] = think
    if request.logprobs or request.token_ids:
        body["logprobs"] = True
        if request.top_logprobs:
            body["top_logprobs"] = request.top_logprobs
    keep = settings.get("keep_alive", keep_alive)
    return orjson.dumps(body if keep is None else {**body, "keep_alive": keep})


def embed_body_of(model: EmbeddingModel, texts: Sequence[str], keep_alive: str | int | None = None) -> bytes:
    """Returns the body of a request for vectors. A text that is too long is refused, not cut."""
    body: dict[str, Any] = {"model": model.name, "input": list(texts), "truncate": False}
    return orjson.dumps(body if keep_alive is None else {**body, "keep_alive": keep_alive})


def _options(request: ChatRequest, model: ChatModel, settings: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: settings[name] for name in _OPTIONS if name in settings}
    if model.context_window is not None:
        options["num_ctx"] = model.context_window
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    if request.temperature is not None and model.capabilities.temperature:
        options["temperature"] = request.temperature
    return options


def _think(settings: Mapping[str, Any]) -> bool | str | None:
    """Returns whether or how the model thinks. None: as it does by itself."""
    if "think" in settings:
        value: bool | str = settings["think"]
        return value
    thinking = settings.get("thinking") or {}
    if kind := thinking.get("type"):
        return bool(kind != "disabled")
    effort = settings.get("reasoning_effort") or (settings.get("reasoning") or {}).get("reasoning_effort")
    if effort in ("none", "minimal"):
        return False
    return None if effort is None else str(effort)


def _format(format: ResponseFormat) -> Any:
    return "json" if format.schema is None else format.schema


def _tools(request: ChatRequest) -> Sequence[ToolSpec]:
    choice = request.tool_choice
    if isinstance(choice, str):
        return [tool for tool in request.tools if tool.name == choice]
    return () if choice is ToolMode.NONE else request.tools


def _tool(tool: ToolSpec) -> dict[str, Any]:
    parameters = orjson.Fragment(tool.parameters_json)
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def _messages(request: ChatRequest) -> Iterator[dict[str, Any]]:
    names: dict[str, str] = {}
    last_user = max((n for n, message in enumerate(request.messages) if message.role is Role.USER), default=-1)
    for number, message in enumerate(request.messages):
        if message.role is Role.TOOL:
            yield from _results(message.parts, names, request.handle)
        elif message.role is Role.ASSISTANT:
            names |= {part.id: part.name for part in message.parts if isinstance(part, ToolCall)}
            yield _assistant(message, with_thoughts=number > last_user)
        else:
            yield _message(_ROLES[message.role], message.parts, request.handle)


def _message(role: str, parts: Iterable[Part], handle: str) -> dict[str, Any]:
    parts = list(parts)
    message_out: dict[str, Any] = {"role": role, "content": _text(parts)}
    images = [_image(part, handle) for part in parts if isinstance(part, Image)]
    return {**message_out, "images": images} if images else message_out


def _assistant(message: Message, *, with_thoughts: bool) -> dict[str, Any]:
    message_out: dict[str, Any] = {"role": "assistant", "content": _text(message.parts)}
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    thoughts = "\n".join(part.text for part in message.parts if isinstance(part, Reasoning))
    if thoughts and with_thoughts:
        message_out["thinking"] = thoughts
    if calls:
        message_out["tool_calls"] = [_call(number, call) for number, call in enumerate(calls)]
    return message_out


def _call(number: int, call: ToolCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "function": {"index": number, "name": call.name, "arguments": _object(call.arguments_json)},
    }


def _object(arguments_json: str) -> Any:
    """Here arguments are an object; what a model wrote that is none goes back as text under a name of ours."""
    try:
        value = orjson.loads(arguments_json)
    except orjson.JSONDecodeError:
        value = None
    return orjson.Fragment(arguments_json) if isinstance(value, dict) else {"arguments": arguments_json}


def _results(parts: Iterable[Part], names: Mapping[str, str], handle: str) -> Iterator[dict[str, Any]]:
    """A message for each result; pictures follow in a user message: most templates show none in a result."""
    pictures: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolResult):
            raise LlmBadRequest("a tool message may hold tool results only", handle=handle)
        pictures += [item for item in part.content if isinstance(item, Image)]
        named = {"tool_name": names.get(part.tool_call_id, ""), "tool_call_id": part.tool_call_id}
        yield {"role": "tool", "content": _text(part.content), **named}
    if pictures:
        yield _message("user", pictures, handle)


def _image(image: Image, handle: str) -> str:
    if image.url:
        message = f"{handle} takes images by value alone, as base64 data; an image with a URL must be fetched before."
        raise LlmBadRequest(message, handle=handle)
    return image.data


def _text(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))
