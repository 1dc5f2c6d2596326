"""The `model_settings` object of the REST API, as far as a provider takes it. Pure.

It carries some of the request's own fields, which were read before, and those of one provider. An agent may
be moved to another provider's model with the settings of the first: keys of another provider are
passed over, and only unknown ones are refused, so that a typing error is not silently without effect.
"""

from collections.abc import Mapping
from typing import Any

from services.llm_gateway.core.errors import LlmBadRequest

# Fields of the request itself, and the union's tag.
_COMMON = frozenset(
    {"provider_type", "max_output_tokens", "parallel_tool_calls", "temperature", "strict", "model", "handle"}
    | {"response_format", "fallback_handles"}
)
OPENAI = frozenset(
    {"reasoning", "reasoning_effort", "verbosity", "top_p", "seed", "stop", "service_tier"}
    | {"frequency_penalty", "presence_penalty"}
)
ANTHROPIC = frozenset({"thinking", "effort", "stop_sequences", "service_tier", "metadata"})
OLLAMA = frozenset(
    {"reasoning", "reasoning_effort", "thinking", "think", "top_p", "top_k", "min_p", "seed", "stop", "keep_alive"}
    | {"frequency_penalty", "presence_penalty"}
)
# Of a model whose prompt is rendered here and whose reply is read as text.
COMPLETIONS = frozenset({"top_p", "top_k", "min_p", "seed", "stop", "frequency_penalty", "presence_penalty"})
SGLANG = COMPLETIONS | {"tool_call_parser", "reasoning_parser"}
GOOGLE = frozenset(
    {"thinking_config", "response_schema", "safety_settings", "top_p", "top_k", "seed", "stop_sequences", "stop"}
)
_ANYBODYS = _COMMON | OPENAI | ANTHROPIC | OLLAMA | SGLANG | GOOGLE


def own_settings(settings: Mapping[str, Any], own: frozenset[str], handle: str) -> dict[str, Any]:
    """Returns the settings in `own` that are set (null counts as unset). Raises LlmBadRequest for unknown keys."""
    if unknown := sorted(settings.keys() - _ANYBODYS):
        allowed = ", ".join(sorted(own | _COMMON))
        raise LlmBadRequest(
            f"model_settings for {handle} has unknown keys {', '.join(unknown)}; known are: {allowed}.", handle=handle
        )
    return {key: value for key, value in settings.items() if key in own and value is not None}
