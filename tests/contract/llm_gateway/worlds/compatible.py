"""The vendors beside OpenAI that speak Chat Completions, and a server that nobody knows."""

from functools import partial
from typing import Any

import orjson

from services.llm_gateway.core.chat import Reasoning, RedactedReasoning, Usage
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.openai_compatible import CompatibleServer
from tests.fakes.openai_server import OpenAIServer

_COMMON = frozenset({"images", "result_images", "reasoning", "parallel", "json_schema", "response_id"})
_ALL = _COMMON | {"forced_call"}
_CACHED = Usage(100, 7, cached_input_tokens=40)


def _world(vendor: str, name: str, carries: frozenset[str], **fields: Any) -> WorldSpec:
    """Of a model that thinks."""
    fake = partial(CompatibleServer, vendor)
    return WorldSpec(vendor, OpenAIProvider, f"{vendor}/{name}", fake, carries, reasons=True, **fields)


def _told(sent: Any) -> Any:
    """The schema in the instructions, for those that take none."""
    return orjson.loads(sent["messages"][0]["content"].partition("JSON Schema: ")[2])


_SIGNED = 'openrouter:{"format":"anthropic-claude-v1","index":0,"signature":"sig-of-the-fake","type":"reasoning.text"}'
_SEALED = 'openrouter:{"data":"opaque","format":"anthropic-claude-v1","index":1,"type":"reasoning.encrypted"}'

WORLDS = [
    _world("deepseek", "deepseek-reasoner", _COMMON, usage=_CACHED, schema_in=_told),
    _world(
        "mistral",
        "mistral-small-latest",
        _ALL | {"embeddings"},
        usage=_CACHED,
        embedding=("mistral-embed", 1_024),
    ),
    _world(
        "openrouter",
        "anthropic/claude-sonnet-4.5",
        _ALL | {"embeddings"},
        dialect="openai",
        usage=Usage(100, 7, cached_input_tokens=40, cache_write_tokens=0, reasoning_tokens=0),
        thoughts=(Reasoning("two and two", _SIGNED), RedactedReasoning(_SEALED)),
        embedding=("openai/text-embedding-3-small", 1_536),
    ),
    _world("groq", "openai/gpt-oss-120b", _ALL),
    _world(
        "together",
        "zai-org/GLM-5.3",
        _ALL | {"embeddings"},
        embedding=("intfloat/multilingual-e5-large-instruct", 1_024),
    ),
    _world("xai", "grok-4.3", _ALL),
    _world("cerebras", "gpt-oss-120b", _ALL),
    _world("zai", "glm-5", _COMMON, usage=_CACHED, overflow=(None, None), schema_in=_told),
    _world("moonshot", "kimi-k2.6", _COMMON, usage=_CACHED, schema_in=_told),
    # Whatever speaks the dialect behind OPENAI_BASE_URL, of a model in no table.
    WorldSpec(
        "unknown",
        OpenAIProvider,
        "openai/some-model",
        partial(OpenAIServer, models=["some-model"]),
        _ALL | {"logprobs", "token_ids", "embeddings"},
        dialect="openai",
    ),
]
