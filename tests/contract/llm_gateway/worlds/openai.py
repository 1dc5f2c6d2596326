"""OpenAI's Chat Completions."""

from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.openai_server import OpenAIServer

WORLDS = [
    WorldSpec(
        "openai",
        OpenAIProvider,
        "openai/gpt-4o-mini",
        OpenAIServer,
        frozenset({"images", "result_images", "reasoning", "parallel", "logprobs", "embeddings", "json_schema"})
        | {"forced_call", "token_ids", "response_id"},
        dialect="openai",
    )
]
