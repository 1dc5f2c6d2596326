"""Anthropic's Messages."""

from services.llm_gateway.chat import Usage
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
        | {"json_schema", "forced_call", "response_id"},
        dialect="anthropic",
        length="max_tokens",
        usage=Usage(150, 7, cached_input_tokens=40, cache_write_tokens=10),
        overflow=(200_000, 208_310),
        schema_in=lambda sent: sent["output_config"]["format"]["schema"],
    )
]
