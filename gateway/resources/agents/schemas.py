"""Agents."""

from gateway.openapi.schemas import ANY, FLAG, NUMBER, OBJECT, TEXT, WHOLE, array, choice, maybe, members_of, of, record
from gateway.resources.archives.schemas import EMBEDDING_CONFIG
from gateway.resources.blocks.schemas import BLOCK
from gateway.resources.folders.schemas import FILE_BLOCK, FOLDER
from gateway.resources.groups.schemas import GROUP
from gateway.resources.identities.schemas import IDENTITY
from gateway.resources.messages.schemas import APPROVAL_REQUEST
from gateway.resources.sandbox_configs.schemas import SECRET
from gateway.resources.tools.schemas import TOOL
from loci.agent.v1 import agent_pb2, checkpoint_service_pb2

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
        "file_blocks": array(FILE_BLOCK),
        "agent_type": maybe(TEXT),
        "git_enabled": FLAG,
        "prompt_template": TEXT,
    },
)
_LEFT = ("version", "context_window_limit", "folders", "files")
_OLDER = ("llm_config", "embedding_config", "memory", "sources", "tool_exec_environment_variables")
AGENT = of(
    "AgentState",
    agent_pb2.Agent.DESCRIPTOR,
    leave=_LEFT,
    deprecated=(*_OLDER, "identity_ids", "multi_agent_group"),
    # Optional in the message, so that a change can leave them out; an agent has them all.
    **dict.fromkeys(("name", "system", "model", "timezone"), TEXT),
    message_buffer_autoclear=FLAG,
    **dict.fromkeys(("hidden", "enable_sleeptime"), maybe(FLAG)),
    recall_passages=WHOLE,
    embedding=maybe(TEXT),
    metadata=maybe(OBJECT),
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
