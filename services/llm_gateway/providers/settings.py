"""The `model_settings` object of the REST API, as far as a provider takes it. Pure.

It carries some of the request's own fields, which were read before; the rest is the provider's. A key that
neither knows is refused, so that a typing error is not silently without effect.
"""

from collections.abc import Mapping, Set
from typing import Any

from services.llm_gateway.errors import LlmBadRequest

# Fields of the request itself, and the union's tag.
_COMMON = frozenset(
    {"provider_type", "max_output_tokens", "parallel_tool_calls", "temperature", "strict", "model", "handle"}
)


def checked(settings: Mapping[str, Any], known: Set[str], handle: str) -> Mapping[str, Any]:
    """The settings that are set (null counts as unset). Raises LlmBadRequest for keys nobody knows."""
    if unknown := sorted(settings.keys() - known - _COMMON):
        allowed = ", ".join(sorted(known | _COMMON))
        raise LlmBadRequest(
            f"model_settings of {handle} has unknown keys {', '.join(unknown)}; known are: {allowed}.", handle=handle
        )
    return {key: value for key, value in settings.items() if key in known and value is not None}
