"""A request as vLLM's /v1/completions, its prompt rendered here. Pure."""

from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.shared.model_settings import COMPLETIONS, own_settings
from services.llm_gateway.vendors.text.rendering import Prompt


def completion_body_of(request: ChatRequest, model: ChatModel, prompt: Prompt, *, stream: bool) -> bytes:
    """Returns the request's JSON."""
    settings = own_settings(request.settings, COMPLETIONS, request.handle)
    # Null is all that fits; left out it would be 16 tokens.
    body: dict[str, Any] = {"model": model.name, **prompt_fields(prompt), "max_tokens": request.max_output_tokens}
    stops = settings.pop("stop", [])
    if stops := [*prompt.stops, *([stops] if isinstance(stops, str) else stops)]:
        body["stop"] = stops
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.logprobs or request.token_ids:
        body["logprobs"] = request.top_logprobs or 1
    if request.token_ids:
        body["return_token_ids"] = True
    if request.response_format is not None:
        format = request.response_format
        schema = {"name": format.name, "schema": format.schema}
        is_any = format.schema is None
        body["response_format"] = {"type": "json_object"} if is_any else {"type": "json_schema", "json_schema": schema}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return orjson.dumps({**body, **settings})


def prompt_fields(prompt: Prompt) -> dict[str, Any]:
    """Returns the prompt's fields: the mark that begins it is not added again."""
    return {"prompt": f"{prompt.begin}{prompt.text}", "add_special_tokens": not prompt.begin}
