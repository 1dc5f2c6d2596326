"""Servers on one's own machines: Ollama, LM Studio, vLLM and SGLang, each by every way that is spoken to it."""

from dataclasses import replace
from functools import partial

import orjson

from services.llm_gateway.core.chat import Usage
from services.llm_gateway.vendors.lmstudio.client import LmStudioProvider
from services.llm_gateway.vendors.ollama.client import OllamaProvider
from services.llm_gateway.vendors.sglang.client import SglangProvider
from services.llm_gateway.vendors.vllm.client import VllmProvider
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes.lmstudio_server import LmStudioServer
from tests.fakes.ollama_server import OllamaServer
from tests.fakes.sglang_server import SglangServer
from tests.fakes.vllm_server import VllmServer

_OLLAMA = WorldSpec(
    "ollama",
    OllamaProvider,
    "ollama/qwen3-vl:8b",
    OllamaServer,
    frozenset({"images", "result_images", "reasoning", "parallel", "logprobs", "embeddings", "json_schema"}),
    framing="ndjson",
    usage=Usage(100, 7),
    # It names neither; the window is the one that was sent.
    overflow=(131_072, None),
    chat_paths=("/api/chat",),
    embedding=("nomic-embed-text:latest", 768),
    schema_in=lambda sent: sent["format"],
    window=131_072,
    reasons=True,
)

_PARSERS = {"tool_call_parser": "qwen25"}
_OPENAIS = frozenset(
    {"images", "result_images", "reasoning", "parallel", "logprobs", "token_ids", "embeddings", "json_schema"}
    | {"forced_call", "response_id"}
)
_LMSTUDIO = WorldSpec(
    "lmstudio",
    LmStudioProvider,
    "lmstudio_openai/meta-llama-3.1-8b-instruct",
    LmStudioServer,
    _OPENAIS - {"logprobs", "token_ids"},
    dialect="openai",
    embedding=("text-embedding-nomic-embed-text-v1.5", 768),
)
_VLLM = WorldSpec(
    "vllm",
    VllmProvider,
    "vllm/Qwen/Qwen3-8B",
    VllmServer,
    _OPENAIS | {"count"},
    dialect="openai",
    chat_paths=("/completions",),
    embedding=("BAAI/bge-m3", 1_024),
)
_VLLM_PROMPTS = replace(
    _VLLM,
    name="vllm_prompts",
    dialect="",
    carries=_VLLM.carries - {"images", "result_images"},
    options={"options": {"prompt_formatter": "chatml"}},
)
_SGLANG = WorldSpec(
    "sglang",
    SglangProvider,
    "sglang/qwen/qwen3-8b",
    SglangServer,
    _OPENAIS | {"count"},
    dialect="openai",
    chat_paths=("/chat/completions", "/generate"),
    embedding=("Alibaba-NLP/gte-Qwen2-1.5B-instruct", 1_536),
    # Asked for token ids it is /generate, and that needs a template.
    options={"options": {"chat_template": "chatml"}},
)
_SGLANG_NATIVE = replace(
    _SGLANG,
    name="sglang_native",
    dialect="",
    carries=_SGLANG.carries - {"images", "result_images"},
    options={"options": {"chat_template": "chatml", "native": True}},
    usage=Usage(100, 7, cached_input_tokens=40),
    schema_in=lambda sent: orjson.loads(sent["sampling_params"]["json_schema"]),
)
# The server's own parser finds the calls.
_SGLANG_PARSED = replace(_SGLANG_NATIVE, name="sglang_parsed", fake=partial(SglangServer, info=_PARSERS))

WORLDS = [
    _OLLAMA,
    replace(_OLLAMA, name="ollama_old", fake=partial(OllamaServer, old=True)),
    _LMSTUDIO,
    _VLLM,
    _VLLM_PROMPTS,
    _SGLANG,
    _SGLANG_NATIVE,
    replace(_SGLANG_NATIVE, name="sglang_incremental", fake=partial(SglangServer, incremental=True)),
    _SGLANG_PARSED,
]
