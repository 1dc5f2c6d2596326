"""The neutral chat as Google's generateContent (v1beta, on Vertex v1beta1). Pure.

There is nothing to mark for caches: Gemini caches what requests begin with by itself, from 4,096 tokens on (6,144 with
Gemini 4 Argon), and Gemini 4 has no other cache. Nor is there a switch for parallel calls.

Sources, read in November 2026: ai.google.dev/api/generate-content, ai.google.dev/gemini-api/docs (thinking, function
calling, structured output), docs.cloud.google.com/gemini-enterprise-agent-platform/models/guides/gemini-4-argon.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, ResponseFormat, Role, Text, ToolMode, ToolSpec
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.google.contents import contents_of, generation_of
from services.llm_gateway.vendors.google.schemas import clean_schema, clean_schema_json
from services.llm_gateway.vendors.shared.model_settings import GOOGLE, own_settings

Body = dict[str, Any]

_MODES = {ToolMode.REQUIRED: "ANY", ToolMode.NONE: "NONE"}
_SAMPLING = {"top_p": "topP", "top_k": "topK", "seed": "seed"}
_JSON = "application/json"
# Since this generation a model thinks by level, before by a budget of tokens; and takes tools beside a format.
_LEVELS_SINCE = _FORMAT_WITH_TOOLS_SINCE = 3
# Which budgets the documentation sets equal to which levels.
_BUDGETS = {"MINIMAL": 1_024, "LOW": 1_024, "MEDIUM": 8_192, "HIGH": 24_576, "XHIGH": 24_576}
# These have a level below low.
_MINIMAL = re.compile(r"flash-lite|gemini-3-flash|gemini-3\.[56]-flash")
# It cannot do without thinking.
_ALWAYS_THINKS = "gemini-2.5-pro"
_LEAST_BUDGET = 128


def body_of(request: ChatRequest, model: ChatModel) -> Body:
    """Returns the request's JSON."""
    settings = own_settings(request.settings, GOOGLE, request.handle)
    format = request.response_format or _format_of(settings.get("response_schema"))
    config = _config(request, model, settings)
    enforced = not request.tools or generation_of(model) >= _FORMAT_WITH_TOOLS_SINCE
    if format is not None and enforced:
        config |= _format(format)
    body = _input_of(request, model, "" if format is None or enforced else _format_in_words(format))
    if config:
        body["generationConfig"] = config
    if safety := settings.get("safety_settings"):
        body["safetySettings"] = safety
    if model.provider_type == "google_ai":
        # Google keeps what newer projects send otherwise, for people to read in its studio. Vertex knows no such field.
        body["store"] = False
    return body


def count_body_of(request: ChatRequest, model: ChatModel, resource: str) -> Body:
    """Returns the JSON of a request to count its tokens; with `resource`, the model's name, in the form of
    Google AI.
    """
    counted = _input_of(request, model, "")
    counted.pop("toolConfig", None)
    return {"generateContentRequest": {"model": resource, **counted}} if resource else counted


def _input_of(request: ChatRequest, model: ChatModel, instruction: str) -> Body:
    """Returns the part of the body that costs input tokens."""
    body: Body = {"contents": contents_of(request.messages, model)}
    parts = (part for message in request.messages if message.role is Role.SYSTEM for part in message.parts)
    texts = [part.text for part in parts if isinstance(part, Text) and part.text]
    if texts := [*texts, instruction] if instruction else texts:
        body["systemInstruction"] = {"parts": [{"text": text} for text in texts]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in request.tools]}]
        body["toolConfig"] = {"functionCallingConfig": _calling(request)}
    return body


def _declaration(tool: ToolSpec) -> Body:
    declaration: Body = {"name": tool.name, "description": tool.description}
    schema = clean_schema_json(tool.parameters_json)
    # A function without arguments has no schema there.
    return {**declaration, "parametersJsonSchema": orjson.Fragment(schema)} if schema else declaration


def _calling(request: ChatRequest) -> Body:
    choice = request.tool_choice
    if isinstance(choice, str):
        return {"mode": "ANY", "allowedFunctionNames": [choice]}
    # Calls are then held to their schemas, and text may come as it may with AUTO.
    free = "VALIDATED" if any(tool.strict for tool in request.tools) else "AUTO"
    return {"mode": _MODES.get(choice, free)}


def _config(request: ChatRequest, model: ChatModel, settings: Mapping[str, Any]) -> Body:
    config: Body = {}
    if model.capabilities.temperature:
        config |= {name: settings[key] for key, name in _SAMPLING.items() if key in settings}
        if request.temperature is not None:
            config["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        config["maxOutputTokens"] = request.max_output_tokens
    if stops := settings.get("stop_sequences") or settings.get("stop"):
        config["stopSequences"] = [stops] if isinstance(stops, str) else stops
    if (request.logprobs or request.token_ids) and model.capabilities.logprobs:
        config["responseLogprobs"] = True
        if request.top_logprobs:
            config["logprobs"] = request.top_logprobs
    if thinking := _thinking(settings.get("thinking_config"), model):
        config["thinkingConfig"] = thinking
    return config


def _thinking(wished: Any, model: ChatModel) -> Body:
    """Returns thinking by level or by budget, whichever the model takes."""
    if not isinstance(wished, Mapping) or not model.capabilities.reasoning:
        return {}
    show = _either(wished, "include_thoughts", "includeThoughts")
    level, budget = (
        _either(wished, "thinking_level", "thinkingLevel"),
        _either(wished, "thinking_budget", "thinkingBudget"),
    )
    thinking: Body = {} if show is None else {"includeThoughts": show}
    name, generation = model.base_model or model.name, generation_of(model)
    if generation and generation < _LEVELS_SINCE:
        if budget is None and level:
            budget = _BUDGETS.get(str(level).upper())
        if isinstance(budget, int) and 0 <= budget < _LEAST_BUDGET and name.startswith(_ALWAYS_THINKS):
            budget = _LEAST_BUDGET
        return thinking if budget is None else {**thinking, "thinkingBudget": budget}
    if level:
        return {**thinking, "thinkingLevel": str(level).upper()}
    # A negative one leaves it to the model.
    return (
        thinking if not isinstance(budget, int) or budget < 0 else {**thinking, "thinkingLevel": _level(budget, name)}
    )


def _level(budget: int, name: str) -> str:
    if budget == 0:
        return "MINIMAL" if _MINIMAL.search(name) else "LOW"
    return next((level for level in ("LOW", "MEDIUM") if budget <= _BUDGETS[level]), "HIGH")


def _either(values: Mapping[str, Any], *names: str) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


def _format(format: ResponseFormat) -> Body:
    config: Body = {"responseMimeType": _JSON}
    return config if format.schema is None else {**config, "responseJsonSchema": clean_schema(format.schema)}


def _format_in_words(format: ResponseFormat) -> str:
    """For models that refuse tools beside a format: it is asked for, and not enforced."""
    schema = f" It fits this JSON Schema: {orjson.dumps(format.schema).decode()}" if format.schema else ""
    return f"When you reply to the user, the reply is one JSON object and nothing else.{schema}"


def _format_of(setting: Any) -> ResponseFormat | None:
    """The setting `response_schema`, in the form of a response_format or a plain schema."""
    if not isinstance(setting, Mapping):
        return None
    match setting.get("type"):
        case "text":
            return None
        case "json_object":
            return ResponseFormat()
        case "json_schema":
            described = setting.get("json_schema") or {}
            return ResponseFormat(described.get("schema") or described)
        case _:
            return ResponseFormat(setting)
