"""Bedrock's Converse: Claude through a profile of a region, signed; and Nova, with a Bedrock API key."""

from typing import Any

import orjson

from services.llm_gateway.core.chat import Reasoning, RedactedReasoning, Usage
from services.llm_gateway.vendors.bedrock.client import BedrockProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.contract.llm_gateway.worlds.anthropic import with_bounds_said
from tests.fakes.bedrock_server import ACCESS_KEY, BedrockServer

_CHATS = ("/converse", "/converse-stream")
_SIGNED = {"access_key": ACCESS_KEY, "region": "us-east-1", "options": {"session_token": "token-test"}}
_CARRIES = frozenset(
    {"images", "result_images", "reasoning", "redacted", "parallel", "embeddings", "forced_call", "response_id"}
)
_USAGE = Usage(150, 7, cached_input_tokens=40, cache_write_tokens=10)


def _schema_in(sent: Any) -> Any:
    return orjson.loads(sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])


WORLDS = [
    WorldSpec(
        "bedrock",
        BedrockProvider,
        "bedrock/us.anthropic.claude-haiku-4-5-20251001-v1:0",
        BedrockServer,
        _CARRIES | {"json_schema", "count"},
        options=_SIGNED,
        credential=("x-amz-security-token", "token-test"),
        thoughts=(Reasoning("two and two", "sig-of-the-fake"), RedactedReasoning("bedrock:b3BhcXVl")),
        framing="eventstream",
        chat_paths=_CHATS,
        id_in_headers=True,
        length="max_tokens",
        usage=_USAGE,
        overflow=(200_000, 208_310),
        embedding=("amazon.titan-embed-text-v2:0", 1024),
        schema_in=_schema_in,
        as_sent=with_bounds_said,
    ),
    WorldSpec(
        "bedrock_nova",
        BedrockProvider,
        "bedrock/amazon.nova-lite-v1:0",
        BedrockServer,
        _CARRIES,
        thoughts=(Reasoning("two and two", "bedrock:sig-of-the-fake"), RedactedReasoning("bedrock:b3BhcXVl")),
        framing="eventstream",
        chat_paths=_CHATS,
        id_in_headers=True,
        length="max_tokens",
        usage=_USAGE,
        overflow=(200_000, 208_310),
        embedding=("cohere.embed-v4:0", 1536),
        schema_in=lambda sent: sent["toolConfig"]["tools"][0]["toolSpec"]["inputSchema"]["json"],
    ),
]
