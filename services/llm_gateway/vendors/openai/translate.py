"""The neutral chat as a request of Chat Completions, as each vendor takes it. Pure.

Fields that a vendor does not take are left out or said another way: profiles.py has the rules, messages.py does the
history.
"""

import re
from dataclasses import replace
from typing import Any

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Generation,
    Message,
    Part,
    ResponseFormat,
    ToolCall,
    ToolMode,
    ToolSpec,
)
from services.llm_gateway.core.errors import LlmSchemaRefused
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.thinking import effort_of
from services.llm_gateway.vendors.openai.details import settle
from services.llm_gateway.vendors.openai.messages import messages_of
from services.llm_gateway.vendors.openai.profiles import Strict, Thoughts, VendorProfile, profile_of
from services.llm_gateway.vendors.shared import schemas
from services.llm_gateway.vendors.shared.model_settings import OPENAI, own_settings
from services.llm_gateway.vendors.shared.strict_values import restore_json

# With tools these take no reasoning effort on Chat Completions: without "none" every request is refused.
_NO_EFFORT_WITH_TOOLS = re.compile(r"gpt-(5\.([2-9]|\d\d)|[6-9])")
# The lowest effort is spelt "minimal" by the first GPT-5 models alone, "none" by those after; o-models begin
# at "low".
_MINIMAL = re.compile(r"gpt-5(-mini|-nano)?(-20|$)")
_O_MODEL = re.compile(r"o\d")
_OPENAIS_TYPES = ("openai", "azure")


def body_of(request: ChatRequest, model: ChatModel, *, stream: bool, is_vendor: bool = False) -> bytes:
    """Returns the request's JSON; `is_vendor`: the base URL is the vendor's own. Raises LlmBadRequest,
    LlmSchemaRefused.
    """
    vendor = profile_of(model.provider_type, is_vendor=is_vendor)
    format, note = _response_format(request, vendor)
    body: dict[str, Any] = {"model": model.name, "messages": messages_of(request, model, vendor, note), **format}
    if tools := _tools(request, model, vendor):
        body["tools"] = tools
        body |= _tool_choice(request, model, vendor)
    if request.max_output_tokens is not None:
        limit = vendor.thinking_limit if model.capabilities.reasoning else vendor.limit
        body[limit] = request.max_output_tokens
    if request.temperature is not None and model.capabilities.temperature:
        body["temperature"] = request.temperature
    if stream:
        body["stream"] = True
        if vendor.stream_options:
            body["stream_options"] = {"include_usage": True}
    if vendor.cache_key and request.cache_key:
        body[vendor.cache_key] = request.cache_key
    body |= _token_details(request, model, vendor)
    for names, fields in vendor.extra:
        if names.search(model.name):
            body |= fields
    body |= _settings(request, model, vendor)
    return orjson.dumps(body)


def _token_details(request: ChatRequest, model: ChatModel, vendor: VendorProfile) -> dict[str, Any]:
    """Returns the fields for log probabilities, which reasoning models refuse, and token ids, as vLLM gives them."""
    fields: dict[str, Any] = {}
    if vendor.logprobs and (request.logprobs or request.token_ids) and not model.capabilities.reasoning:
        fields["logprobs"] = True
        if request.top_logprobs:
            fields["top_logprobs"] = request.top_logprobs
    if request.token_ids and vendor.token_ids:
        fields["return_token_ids"] = True
    return fields


def _response_format(request: ChatRequest, vendor: VendorProfile) -> tuple[dict[str, Any], str]:
    """Returns the field, and a note for the instructions: a vendor that takes no schemas is told it there."""
    format = request.response_format
    if format is None:
        return {}, ""
    if format.schema is None or not vendor.reply_schemas:
        schema = "" if format.schema is None else f" It has this JSON Schema: {orjson.dumps(format.schema).decode()}"
        note = "" if vendor.reply_schemas else f"Reply with one JSON object and nothing else.{schema}"
        return {"response_format": {"type": "json_object"}}, note
    return {"response_format": {"type": "json_schema", "json_schema": reply_schema(format, request.handle)}}, ""


def reply_schema(format: ResponseFormat, handle: str) -> dict[str, Any]:
    """Returns the schema, strict only where that leaves its meaning as it is."""
    fields: dict[str, Any] = {"name": format.name, "schema": format.schema}
    if format.strict is None or format.schema is None:
        return fields
    strict = None
    if format.strict:
        try:
            strict = schemas.strict_reply(format.schema)
        except schemas.SchemaTooLarge as error:
            raise _too_large(error, handle) from error
    return {**fields, "schema": strict or format.schema, "strict": strict is not None}


def _too_large(error: schemas.SchemaTooLarge, handle: str) -> LlmSchemaRefused:
    advice = "Make it smaller, or turn its strict mode off."
    return LlmSchemaRefused(f"The schema of response_format is too large: {error}. {advice}", handle=handle)


def _settings(request: ChatRequest, model: ChatModel, vendor: VendorProfile) -> dict[str, Any]:
    own = OPENAI | {"thinking"} if vendor.switches_thinking else OPENAI
    settings = own_settings(request.settings, own, request.handle)
    effort = effort_of(request.settings, model)
    thinking = settings.pop("thinking", None)
    settings = {name: value for name, value in settings.items() if name not in ("reasoning", "reasoning_effort")}
    refused = vendor.refuses | (vendor.refuses_of_thinkers if model.capabilities.reasoning else frozenset())
    fields = {vendor.renames.get(name, name): value for name, value in settings.items() if name not in refused}
    if vendor.switches_thinking:
        fields |= _switch(thinking, effort)
        effort = None if effort == "none" else effort
    if not model.capabilities.reasoning:
        return fields
    return fields | _effort(request, model, effort)


def _switch(thinking: Any, effort: str | None) -> dict[str, Any]:
    """Thinking on or off, as the setting of that name says it or the effort "none" means it."""
    switch = thinking if isinstance(thinking, dict) else {}
    if effort == "none":
        switch = {"type": "disabled"}
    if switch.get("type") not in ("enabled", "disabled"):
        return {}
    return {"thinking": {name: switch[name] for name in ("type", "clear_thinking") if name in switch}}


def _effort(request: ChatRequest, model: ChatModel, effort: str | None) -> dict[str, Any]:
    name = model.base_model or model.name
    if model.provider_type not in _OPENAIS_TYPES:
        return {"reasoning_effort": effort} if effort else {}
    if request.tools and _NO_EFFORT_WITH_TOOLS.match(name):
        effort = "none"
    return {"reasoning_effort": spelt_effort(effort, name)} if effort else {}


def spelt_effort(effort: str, name: str) -> str:
    """Returns the effort as the vendor's model of this name takes it."""
    if effort not in ("none", "minimal"):
        return effort
    if _O_MODEL.match(name):
        return "low"
    if _MINIMAL.match(name):
        return "minimal"
    return "none"


def _tools(request: ChatRequest, model: ChatModel, vendor: VendorProfile) -> list[dict[str, Any]]:
    """Returns the tools; none where none may be called and the wire has no word for that."""
    if request.tool_choice is ToolMode.NONE and not vendor.none:
        return []
    strict = strict_schemas(request, vendor)
    return [_tool(tool, strict.get(tool.name)) for tool in request.tools]


def strict_schemas(request: ChatRequest, vendor: VendorProfile) -> dict[str, str]:
    """Returns the strict forms of the tools that are to be enforced and have one, by name."""
    tools = [tool for tool in request.tools if tool.strict]
    if vendor.strict is Strict.NO or not tools:
        return {}
    forms = {tool.name: form for tool in tools if (form := _strict_form(tool)) is not None}
    return {} if vendor.strict is Strict.ALL and len(forms) < len(request.tools) else forms


def complete_reply(generation: Generation, request: ChatRequest, vendor: VendorProfile) -> Generation:
    """Returns the reply with the arguments of enforced tools as the tools themselves take them, and its thoughts as
    they go back. Deltas that came before show what the model wrote.
    """
    strict = strict_schemas(request, vendor)
    if not strict and vendor.thoughts is not Thoughts.DETAILS:
        return generation
    originals = {tool.name: tool.parameters_json for tool in request.tools if tool.name in strict}
    parts = [settle(_restore(part, originals)) for part in generation.message.parts]
    return replace(generation, message=Message(generation.message.role, parts))


def _restore(part: Part, originals: dict[str, str]) -> Part:
    if not isinstance(part, ToolCall) or part.name not in originals:
        return part
    return replace(part, arguments_json=restore_json(part.arguments_json, originals[part.name]))


def _strict_form(tool: ToolSpec) -> str | None:
    """Returns the strict form; None also where it is larger than strict mode takes: no tool closes an agent."""
    try:
        return schemas.strict_json(tool.parameters_json)
    except schemas.SchemaTooLarge:
        return None


def _tool(tool: ToolSpec, strict: str | None) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": orjson.Fragment(strict or schemas.plain_json(tool.parameters_json)),
    }
    return {"type": "function", "function": {**function, "strict": True} if strict else function}


def _tool_choice(request: ChatRequest, model: ChatModel, vendor: VendorProfile) -> dict[str, Any]:
    choice = request.tool_choice
    fields: dict[str, Any] = {}
    may_force = vendor.forces_thinkers or not model.capabilities.reasoning
    if choice is ToolMode.AUTO:
        fields["tool_choice"] = "auto"
    elif choice is ToolMode.NONE:
        fields["tool_choice"] = "none"
    elif isinstance(choice, str) and may_force and vendor.names_tools:
        fields["tool_choice"] = {"type": "function", "function": {"name": choice}}
    elif choice is ToolMode.REQUIRED and may_force and vendor.required:
        fields["tool_choice"] = vendor.required
    if request.parallel_tool_calls is False and vendor.parallel and model.capabilities.parallel_tool_calls:
        # True is everybody's default, and some models refuse the parameter.
        fields["parallel_tool_calls"] = False
    return fields
