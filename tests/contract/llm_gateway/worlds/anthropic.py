"""Anthropic's Messages, and MiniMax, which speaks its dialect."""

from typing import Any

from services.llm_gateway.core.chat import Reasoning, RedactedReasoning, Usage
from services.llm_gateway.vendors.anthropic.client import AnthropicProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.anthropic_minimax_server import MiniMaxServer
from tests.fakes.anthropic_server import AnthropicServer


def with_bounds_said(schema: Any) -> Any:
    """The schema of the suite's person, without the bound that Claude's structured outputs refuse."""
    said = {"type": "integer", "description": "(minimum: 18)"}
    return {**schema, "properties": {**schema["properties"], "age": said}}


WORLDS = [
    WorldSpec(
        "anthropic",
        AnthropicProvider,
        "anthropic/claude-haiku-4-5",
        AnthropicServer,
        frozenset({"images", "result_images", "reasoning", "signatures", "redacted", "parallel", "count"})
        | {"json_schema", "forced_call", "response_id"},
        dialect="anthropic",
        thoughts=(Reasoning("two and two", "sig-of-the-fake"), RedactedReasoning("opaque")),
        length="max_tokens",
        usage=Usage(150, 7, cached_input_tokens=40, cache_write_tokens=10),
        overflow=(200_000, 208_310),
        schema_in=lambda sent: sent["output_config"]["format"]["schema"],
        as_sent=with_bounds_said,
    ),
    WorldSpec(
        "minimax",
        AnthropicProvider,
        "minimax/MiniMax-M3",
        MiniMaxServer,
        frozenset({"images", "result_images", "reasoning", "redacted", "parallel", "forced_call", "response_id"}),
        dialect="anthropic",
        thoughts=(Reasoning("two and two", "minimax:sig-of-the-fake"), RedactedReasoning("minimax:opaque")),
        length="max_tokens",
        usage=Usage(150, 7, cached_input_tokens=40, cache_write_tokens=10),
        overflow=(200_000, 208_310),
        schema_in=lambda sent: sent["tools"][0]["input_schema"],
    ),
]
