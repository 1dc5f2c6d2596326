"""Agents, identities and models."""

from gateway.openapi.schemas import (
    ANY,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    array,
    choice,
    maybe,
    members_of,
    names_of,
    of,
    record,
    some,
)
from gateway.resources.archives.schemas import BLOCK, EMBEDDING_CONFIG, FOLDER
from gateway.resources.identities.schemas import GROUP, IDENTITY
from gateway.resources.messages.schemas import APPROVAL_REQUEST
from gateway.resources.models.routes import NULLS
from gateway.resources.tools.schemas import SECRET, TOOL
from loci.agent.v1 import agent_pb2, checkpoint_service_pb2
from loci.llm.v1 import model_pb2, provider_pb2

LLM_CONFIG = record(
    "LLMConfig",
    {
        "handle": TEXT,
        "model": TEXT,
        "model_endpoint_type": TEXT,
        "provider_category": choice("base", "byok"),
        "context_window": WHOLE,
        **dict.fromkeys(
            ("display_name", "model_endpoint", "provider_name", "reasoning_effort", "effort", "verbosity"), maybe(TEXT)
        ),
        **dict.fromkeys(("model_wrapper", "compatibility_type", "tier", "tool_call_parser"), maybe(TEXT)),
        **dict.fromkeys(("temperature", "frequency_penalty"), maybe(NUMBER)),
        **dict.fromkeys(("max_tokens", "top_logprobs", "max_reasoning_tokens"), maybe(WHOLE)),
        "parallel_tool_calls": maybe(FLAG),
        "strict": maybe(FLAG),
        "response_format": ANY,
        **dict.fromkeys(
            ("enable_reasoner", "put_inner_thoughts_in_kwargs", "return_logprobs", "return_token_ids"), FLAG
        ),
    },
)
MEMORY = record(
    "Memory",
    {
        "blocks": array(BLOCK),
        "file_blocks": array(OBJECT),
        "agent_type": maybe(TEXT),
        "git_enabled": FLAG,
        "prompt_template": TEXT,
    },
)
_LEFT = ("version", "context_window_limit", "folders")
_OLDER = ("llm_config", "embedding_config", "memory", "sources", "tool_exec_environment_variables")
AGENT = of(
    "AgentState",
    agent_pb2.Agent.DESCRIPTOR,
    leave=_LEFT,
    deprecated=(*_OLDER, "identity_ids", "multi_agent_group"),
    embedding=maybe(TEXT),
    metadata=OBJECT,
    model_settings=OBJECT,
    compaction_settings=maybe(OBJECT),
    response_format=maybe(OBJECT),
    tool_rules=array(OBJECT),
    llm_config=LLM_CONFIG,
    embedding_config=maybe(EMBEDDING_CONFIG),
    blocks=array(BLOCK),
    memory=MEMORY,
    tools=array(TOOL),
    sources=array(FOLDER),
    secrets=array(SECRET),
    tool_exec_environment_variables=array(SECRET),
    identities=array(IDENTITY),
    identity_ids=array(TEXT),
    managed_group=maybe(GROUP),
    multi_agent_group=maybe(GROUP),
    **dict.fromkeys(("template_id", "base_template_id", "deployment_id", "entity_id"), maybe(TEXT)),
    pending_approval=maybe(APPROVAL_REQUEST),
    enable_sleeptime=FLAG,
    max_files_open=WHOLE,
    per_file_view_window_char_limit=WHOLE,
)
_SHARED = {
    name.removeprefix("shared_"): schema
    for name, schema in members_of(checkpoint_service_pb2.ForkAgentResponse.DESCRIPTOR).items()
    if name.startswith("shared_")
}
FORK = record(
    "ForkedAgent",
    {"agent": AGENT, "copied": record("Copied", {"block_ids": array(TEXT)}), "shared": record("Shared", _SHARED)},
)

_OWN = members_of(model_pb2.Model.DESCRIPTOR)
_PRICE = members_of(type(model_pb2.Model().price).DESCRIPTOR)
_PRICES = {name.removesuffix("_nanos_usd"): maybe(NUMBER) for name in _PRICE if name.endswith("_nanos_usd")}
_NAMES: dict[str, Schema] = {
    "handle": TEXT,
    "name": TEXT,
    "display_name": TEXT,
    "provider_type": TEXT,
    "provider_name": TEXT,
    "provider_category": choice("base", "byok"),
}
MODEL = record(
    "Model",
    {
        **_NAMES,
        "model": TEXT,
        "model_type": choice("llm"),
        "model_endpoint_type": TEXT,
        "model_endpoint": maybe(TEXT),
        "context_window": WHOLE,
        "max_context_window": WHOLE,
        "max_tokens": maybe(WHOLE),
        "temperature": NUMBER,
        "max_reasoning_tokens": WHOLE,
        **dict.fromkeys(
            (
                "enable_reasoner",
                "parallel_tool_calls",
                "put_inner_thoughts_in_kwargs",
                "return_logprobs",
                "return_token_ids",
                "strict",
            ),
            FLAG,
        ),
        **dict.fromkeys(NULLS, ANY),
        **{
            name: _OWN[name]
            for name in ("context_window_source", "max_output_tokens_source", "capabilities", "capabilities_source")
        },
        "price": maybe(record("ModelPrice", {**_PRICES, "source": _PRICE["source"]})),
    },
)
EMBEDDING_MODEL = record(
    "EmbeddingModel",
    {
        **_NAMES,
        "model_type": choice("embedding"),
        "embedding_model": TEXT,
        "embedding_endpoint_type": TEXT,
        "embedding_endpoint": maybe(TEXT),
        "embedding_dim": WHOLE,
        "embedding_chunk_size": WHOLE,
        "batch_size": WHOLE,
        "search": choice("indexed", "exact"),
        "dimensions_source": members_of(model_pb2.EmbeddingModel.DESCRIPTOR)["dimensions_source"],
        **dict.fromkeys(("azure_endpoint", "azure_version", "azure_deployment"), maybe(TEXT)),
    },
)
PROVIDER = of(
    "Provider",
    provider_pb2.Provider.DESCRIPTOR,
    leave=("category", "synced_at"),
    provider_category=names_of(model_pb2.ProviderCategory.DESCRIPTOR, null=True),
    last_synced=members_of(provider_pb2.Provider.DESCRIPTOR)["synced_at"],
    organization_id=TEXT,
    **dict.fromkeys(("api_key", "access_key", "base_url", "region", "api_version", "sync_error"), maybe(TEXT)),
)
PROVIDER_CHECKED = record("ProviderChecked", {"message": TEXT, "model_count": WHOLE})
SAID = record("Said", {"message": TEXT})
OPENAI_MODEL = record(
    "OpenAIModel",
    {"id": TEXT, "object": choice("model"), "created": WHOLE, "owned_by": TEXT},
)
OPENAI_MODELS = record(
    "OpenAIModels", {"object": choice("list"), "data": array(OPENAI_MODEL), "has_more": FLAG}, optional=("has_more",)
)
MODELS = some(array(MODEL), OPENAI_MODELS)
