"""A request as SGLang's own /generate, its prompt rendered here. Pure."""

from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest
from services.llm_gateway.vendors.shared.model_settings import COMPLETIONS, own_settings
from services.llm_gateway.vendors.text.rendering import Prompt, offered_tools, tools_of

_OBJECT = {"type": "object"}


def generate_body_of(request: ChatRequest, prompt: Prompt, *, stream: bool) -> bytes:
    """Returns the request's JSON. The mark that begins a prompt is left out: the server's tokenizer always adds it.

    `skip_special_tokens` is off where calls are looked for: some models mark them with special tokens.
    """
    settings = own_settings(request.settings, COMPLETIONS, request.handle)
    stops = settings.pop("stop", [])
    # Null is all that fits; left out it would be 128 tokens.
    sampling: dict[str, Any] = {"max_new_tokens": request.max_output_tokens, **settings}
    if "seed" in sampling:
        sampling["sampling_seed"] = sampling.pop("seed")
    if stops := [*prompt.stops, *([stops] if isinstance(stops, str) else stops)]:
        sampling["stop"] = stops
    if request.temperature is not None:
        sampling["temperature"] = request.temperature
    if request.response_format is not None:
        sampling["json_schema"] = orjson.dumps(request.response_format.schema or _OBJECT).decode()
    if offered_tools(request):
        sampling["skip_special_tokens"] = False
    body: dict[str, Any] = {"text": prompt.text, "sampling_params": sampling, "stream": stream}
    if request.logprobs or request.token_ids:
        body |= {"return_logprob": True, "return_text_in_logprobs": True, "logprob_start_len": -1}
        if request.top_logprobs:
            body["top_logprobs_num"] = request.top_logprobs
    return orjson.dumps(body)


def parse_calls_body_of(request: ChatRequest, text: str, parser: str) -> bytes:
    """Returns the body for /parse_function_call."""
    return orjson.dumps({"text": text, "tool_call_parser": parser, "tools": tools_of(request.tools)})


def separate_body_of(text: str, parser: str) -> bytes:
    """Returns the body for /separate_reasoning."""
    return orjson.dumps({"text": text, "reasoning_parser": parser})
