"""The neutral chat as Bedrock's Converse API, and requests to embedding models by InvokeModel, where each vendor has a
body of its own. Pure.

That wire has no way to forbid calls: the model is told so, and what it calls regardless is left out (replies.py). Many
models cannot be made to call either, and are told so. Histories with calls are refused without tools, so the tools that
were called are declared where none are offered. How many calls a reply may have cannot be said.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson

from services.llm_gateway.core.chat import ChatRequest, ToolMode, ToolSpec
from services.llm_gateway.core.models import ChatModel, EmbeddingModel
from services.llm_gateway.core.tables.bedrock import base_name
from services.llm_gateway.vendors.anthropic.profiles import BINDING_BETA, room_for, shows_thoughts, thinking_of
from services.llm_gateway.vendors.anthropic.schema import close_schema, close_schema_json
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL, REPLY_TOOL_DESCRIPTION
from services.llm_gateway.vendors.bedrock.messages import (
    CACHE_POINT,
    calls_in,
    conversation,
    schema_fragment,
    system_of,
)
from services.llm_gateway.vendors.bedrock.profiles import ModelProfile, profile_of
from services.llm_gateway.vendors.shared import prompt_notes
from services.llm_gateway.vendors.shared.model_settings import ANTHROPIC, own_settings
from services.llm_gateway.vendors.shared.origins import BEDROCK
from services.llm_gateway.vendors.shared.schemas import plain_json

_SETTINGS = ANTHROPIC | {"top_p", "reasoning", "reasoning_effort"}
_TIERS = frozenset({"priority", "default", "flex", "reserved"})
_ANY_OBJECT = '{"type":"object","properties":{}}'


def path_of(model: str, operation: str) -> str:
    """Returns the path of an operation. A colon stays: what is signed is what the HTTP client sends (signing.py)."""
    return f"/model/{quote(model, safe=':')}/{operation}"


def body_of(request: ChatRequest, model: ChatModel) -> bytes:
    """Returns the request's JSON, streamed or not."""
    profile = profile_of(model)
    settings = own_settings(request.settings, _SETTINGS, request.handle)
    thinking = _thinking(request, model, profile, settings)
    body = _input_of(request, model, profile, thinking)
    if inference := _inference(request, model, settings, thinking):
        body["inferenceConfig"] = inference
    if output := _output(request, profile, settings):
        body["outputConfig"] = output
    if additional := _additional(profile, settings, thinking):
        body["additionalModelRequestFields"] = additional
    if settings.get("service_tier") in _TIERS:
        body["serviceTier"] = {"type": settings["service_tier"]}
    return orjson.dumps(body)


def count_body_of(request: ChatRequest, model: ChatModel) -> bytes:
    """Returns the JSON of a request to count its tokens."""
    profile = profile_of(model)
    thinking = _thinking(request, model, profile, own_settings(request.settings, _SETTINGS, request.handle))
    return orjson.dumps({"input": {"converse": _input_of(request, model, profile, thinking)}})


def replies_by_call(request: ChatRequest, model: ChatModel) -> bool:
    """Returns whether the reply is the input of REPLY_TOOL."""
    profile = profile_of(model)
    return _wants_json(request) and "tool" in profile.choices and _reply_schema(request, profile) is None


def _input_of(
    request: ChatRequest, model: ChatModel, profile: ModelProfile, thinking: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the part of the body that costs input tokens."""
    by_call = replies_by_call(request, model)
    choice = _tool_choice(request, profile, by_call=by_call)
    tools = _tools(request, profile, by_call=by_call)
    note = prompt_notes.note_for(
        request,
        must_call=request.forces_a_call and choice is None,
        may_not_call=bool(tools) and request.tool_choice is ToolMode.NONE and not by_call,
        in_json=_wants_json(request) and not by_call and _reply_schema(request, profile) is None,
    )
    thoughts = shows_thoughts(profile.claude, thinking)
    body: dict[str, Any] = {"messages": conversation(request, profile, thoughts=thoughts, note=note)}
    if system := system_of(request, profile):
        body["system"] = system
    if tools:
        body["toolConfig"] = {"tools": tools, **({"toolChoice": choice} if choice else {})}
    return body


def _wants_json(request: ChatRequest) -> bool:
    return request.response_format is not None and not request.forces_a_call


def _reply_schema(request: ChatRequest, profile: ModelProfile) -> dict[str, Any] | None:
    format = request.response_format
    if format is None or format.schema is None or not profile.schemas:
        return None
    return close_schema(format.schema)


def _tools(request: ChatRequest, profile: ModelProfile, *, by_call: bool) -> list[dict[str, Any]]:
    offered = () if request.tool_choice is ToolMode.NONE else request.tools
    tools = [_tool(tool, profile) for tool in offered]
    if by_call and request.response_format is not None:
        schema = orjson.dumps(request.response_format.schema or {"type": "object"}).decode()
        spec = {"name": REPLY_TOOL, "description": REPLY_TOOL_DESCRIPTION, "inputSchema": schema_fragment(schema)}
        tools.append({"toolSpec": spec})
    if not tools:
        known = {tool.name: tool for tool in request.tools}
        called = (known.get(name) or ToolSpec(name, "", _ANY_OBJECT) for name in calls_in(request.messages))
        tools = [_tool(tool, profile) for tool in called]
    return [*tools, CACHE_POINT] if tools and "tools" in profile.marks else tools


def _tool(tool: ToolSpec, profile: ModelProfile) -> dict[str, Any]:
    form = close_schema_json(tool.parameters_json) if tool.strict and profile.schemas else None
    spec: dict[str, Any] = {"name": tool.name}
    if tool.description.strip():
        spec["description"] = tool.description
    spec["inputSchema"] = schema_fragment(form or plain_json(tool.parameters_json))
    return {"toolSpec": {**spec, "strict": True} if form else spec}


def _tool_choice(request: ChatRequest, profile: ModelProfile, *, by_call: bool) -> dict[str, Any] | None:
    """None for auto, which is what every model does, and for what the model cannot be told."""
    choice = request.tool_choice
    if by_call:
        choice = ToolMode.REQUIRED if request.tools and choice is ToolMode.AUTO else REPLY_TOOL
    if isinstance(choice, str):
        return {"tool": {"name": choice}} if "tool" in profile.choices else None
    return {"any": {}} if choice is ToolMode.REQUIRED and "any" in profile.choices else None


def _thinking(
    request: ChatRequest, model: ChatModel, profile: ModelProfile, settings: Mapping[str, Any]
) -> dict[str, Any] | None:
    if profile.claude is None:
        return None
    forced = bool(profile.choices) and (request.forces_a_call or replies_by_call(request, model))
    return thinking_of(
        settings.get("thinking"),
        profile.claude,
        request.messages,
        effort=settings.get("effort"),
        forced=forced,
        redacted_by=BEDROCK,
    )


def _inference(
    request: ChatRequest, model: ChatModel, settings: Mapping[str, Any], thinking: Mapping[str, Any] | None
) -> dict[str, Any]:
    most = model.max_output_tokens
    fields = {
        "maxTokens": room_for(thinking, request.max_output_tokens or most, most),
        "temperature": request.temperature if model.capabilities.temperature else None,
        "topP": settings.get("top_p") if model.capabilities.temperature else None,
        "stopSequences": settings.get("stop_sequences"),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _output(request: ChatRequest, profile: ModelProfile, settings: Mapping[str, Any]) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if profile.efforts == "output" and (effort := settings.get("effort")):
        output["effort"] = effort
    format = request.response_format
    if format is not None and _wants_json(request) and (schema := _reply_schema(request, profile)) is not None:
        structure = {"jsonSchema": {"schema": orjson.dumps(schema).decode(), "name": format.name}}
        output["textFormat"] = {"type": "json_schema", "structure": structure}
    return output


def _additional(
    profile: ModelProfile, settings: Mapping[str, Any], thinking: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Returns the fields that only one vendor's models know."""
    if thinking:
        betas = {"anthropic_beta": [BINDING_BETA]} if "block_binding" in thinking else {}
        return {"thinking": thinking, **betas}
    reasoning = settings.get("reasoning") or {}
    effort = settings.get("effort") or settings.get("reasoning_effort") or reasoning.get("reasoning_effort")
    if effort and profile.efforts == "openai":
        return {"reasoning_effort": effort}
    if effort in ("low", "medium", "high") and profile.efforts == "nova":
        return {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": effort}}
    return {}


def bodies_of(model: EmbeddingModel, texts: Sequence[str]) -> Iterator[bytes]:
    """Yields one body for all texts (Cohere), or one for each (Titan)."""
    name = base_name(model.name)
    if name.startswith("embed-"):
        # Whether a text will be searched for or searched with, nobody says.
        fields: dict[str, Any] = {"texts": list(texts), "input_type": "search_document", "embedding_types": ["float"]}
        if name.startswith("embed-v"):
            fields["output_dimension"] = model.dimensions
        yield orjson.dumps(fields)
        return
    sizes = {} if name == "titan-embed-text-v1" else {"dimensions": model.dimensions, "normalize": True}
    for text in texts:
        yield orjson.dumps({"inputText": text, **sizes})


def vectors_in(reply: Mapping[str, Any]) -> Sequence[Sequence[float]]:
    """Returns the vectors of one reply; none where it has none."""
    if isinstance(reply.get("embedding"), list):
        return [reply["embedding"]]
    embeddings = reply.get("embeddings")
    if isinstance(embeddings, dict):
        embeddings = embeddings.get("float")
    return embeddings if isinstance(embeddings, list) else ()
