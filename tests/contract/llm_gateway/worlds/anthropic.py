"""Anthropic's Messages."""

from services.llm_gateway.providers.anthropic.client import AnthropicProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.anthropic_server import AnthropicServer

WORLDS = [
    WorldSpec(
        "anthropic",
        AnthropicProvider,
        "anthropic/claude-haiku-4-5",
        AnthropicServer,
        frozenset({"images", "result_images", "reasoning", "signatures", "redacted", "parallel", "count"})
        | {"json_schema", "forced_call"},
    )
]
