"""Temperature and output limit of a call that leaves them open: those of Letta V1 server 0.16.8 (retired). Pure.

Of a model that no table and no endpoint describes nothing is assumed: it keeps its vendor's defaults. The thinking that
is left open: thinking.py.
"""

from dataclasses import replace

from services.llm_gateway.core.chat import ChatRequest
from services.llm_gateway.core.models import ChatModel

_TEMPERATURE = 1.0
# What a reply may have, however much the model could write.
_OUTPUT_TOKENS = 16_384
_VENDORS = frozenset({"openai", "anthropic"})


def with_defaults(request: ChatRequest, model: ChatModel) -> ChatRequest:
    """Returns the request with the defaults for what it leaves open, if it asks for them."""
    most = model.max_output_tokens
    if not request.fills_defaults or model.provider_type not in _VENDORS or most is None:
        return request
    takes_temperature = model.capabilities.temperature and request.temperature is None
    return replace(
        request,
        temperature=_TEMPERATURE if takes_temperature else request.temperature,
        max_output_tokens=_usual_limit(model, most) if request.max_output_tokens is None else request.max_output_tokens,
    )


def _usual_limit(model: ChatModel, most: int) -> int | None:
    """Returns the limit; none where thoughts of any length count as output."""
    thinks_at_length = model.capabilities.reasoning and model.provider_type == "openai"
    return None if thinks_at_length else min(most, _OUTPUT_TOKENS)
