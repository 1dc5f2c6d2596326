"""Attributes of a call's span, by OpenTelemetry's GenAI conventions; never the prompt."""

import logging

from opentelemetry.trace import Span

from services.llm_gateway.core.chat import ChatRequest, Generation
from services.llm_gateway.core.models import ChatModel

logger = logging.getLogger(__name__)


def attributes_of(operation: str, provider_type: str, name: str) -> dict[str, str]:
    """Returns the attributes of every call before it begins."""
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": provider_type,
        "gen_ai.request.model": name,
    }


def chat_attributes(request: ChatRequest, model: ChatModel) -> dict[str, str | int | float]:
    """Returns the attributes of a chat before it begins."""
    attributes: dict[str, str | int | float] = {**attributes_of("chat", model.provider_type, model.name)}
    if request.max_output_tokens is not None:
        attributes["gen_ai.request.max_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        attributes["gen_ai.request.temperature"] = request.temperature
    if model.endpoint:
        attributes["server.address"] = model.endpoint
    return attributes


def describe(span: Span, generation: Generation) -> None:
    """Adds the attributes of a complete chat."""
    if not span.is_recording():
        return
    span.set_attributes(
        {
            "gen_ai.response.model": generation.provider_model,
            "gen_ai.response.id": generation.provider_response_id,
            "gen_ai.response.finish_reasons": [generation.finish_reason.name.lower()],
            "gen_ai.usage.input_tokens": generation.usage.prompt_tokens,
            "gen_ai.usage.output_tokens": generation.usage.completion_tokens,
            "loci.failed_tries": len(generation.failed_tries),
        }
    )
    if generation.cost is not None:
        span.set_attribute("loci.cost_nanos_usd", generation.cost)


def describe_excess(span: Span, model: ChatModel, count: int) -> None:
    """Adds and logs the calls of a reply that nobody runs, since one alone was allowed."""
    span.set_attribute("loci.calls_left_out", count)
    logger.warning("%s made %d calls more than the one that was allowed; they are left out", model.name, count)
