"""AgentState: the fields of the reference and `recall_passages`, made from an Agent and what is known of its models."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gateway.access.run_tokens import SECRET_MEMBERS, sees_secrets
from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.folders.responses import file_block, folder_to_rest
from gateway.resources.groups.responses import group
from gateway.resources.messages.responses import message
from gateway.resources.tools.responses import tool_to_rest
from gateway.rest.convert import Rest, from_json, to_rest
from loci.agent.v1 import agent_pb2, message_pb2
from loci.llm.v1 import model_pb2
from loci.memory.v1 import folder_pb2
from loci.tool.v1 import tool_pb2
from services.common.context import current
from services.common.core.file_limits import file_limits
from services.common.fields import enum_names
from services.common.ids import to_public

# Groups that a client asks for with `include`, and the fields each fills.
RELATIONS = {
    "agent.blocks": ("blocks", "memory"),
    "agent.identities": ("identities", "identity_ids"),
    "agent.managed_group": ("managed_group", "multi_agent_group"),
    "agent.pending_approval": ("pending_approval",),
    "agent.secrets": ("secrets", "tool_exec_environment_variables"),
    "agent.sources": ("sources",),
    "agent.tags": ("tags",),
    "agent.tools": ("tools",),
}
_ATTACHED = ("blocks", "tools", "folders", "files", "identities", "managed_group", "pending_approval")
_MADE_BY_HAND = frozenset({"version", "context_window_limit", *_ATTACHED})
_THINKING_IN_ARGUMENTS = (
    agent_pb2.AGENT_TYPE_MEMGPT_AGENT,
    agent_pb2.AGENT_TYPE_MEMGPT_V2_AGENT,
    agent_pb2.AGENT_TYPE_SPLIT_THREAD_AGENT,
    agent_pb2.AGENT_TYPE_REACT_AGENT,
    agent_pb2.AGENT_TYPE_WORKFLOW_AGENT,
    agent_pb2.AGENT_TYPE_SLEEPTIME_AGENT,
)
# Of a reply, however much the model could write.
_USUAL_OUTPUT = 16_384
# The default of a client's own settings, as the reference shows it.
_DECLARED_OUTPUT = 4_096
_LLM_CONFIG_NULLS = (
    "model_wrapper",
    "compatibility_type",
    "tier",
    "frequency_penalty",
    "tool_call_parser",
    "top_logprobs",
)


class Models:
    """Models as far as they are known, by handle. A handle that nobody knows is shown as well as its name allows."""

    def __init__(self, chat: dict[str, model_pb2.Model], embedding: dict[str, model_pb2.EmbeddingModel]) -> None:
        self.chat = chat
        self.embedding = embedding


def tools_once() -> Callable[[tool_pb2.Tool], Rest]:
    """`convert.tool_to_rest` for a page of agents, which have most of their tools in common: each is made once."""
    converted: dict[tuple[str, int], Rest] = {}

    def one(message: tool_pb2.Tool) -> Rest:
        key = (message.id, message.version)
        if key not in converted:
            converted[key] = tool_to_rest(message)
        return converted[key]

    return one


def agent_state(
    agent: agent_pb2.Agent,
    models: Models,
    include: frozenset[str] | None = None,
    secrets: Sequence[Rest] = (),
    as_tool: Callable[[tool_pb2.Tool], Rest] = tool_to_rest,
) -> Rest:
    """`agent` as REST; `include`: the relations to show (names of RELATIONS), None for all. Others are empty.

    `secrets`: the agent's, masked. `as_tool`: see `tools_once`.
    """
    rest = to_rest(agent, leave=_MADE_BY_HAND)
    files_open, file_chars = file_limits(
        agent.context_window_limit, rest["max_files_open"], rest["per_file_view_window_char_limit"]
    )
    settings = model_settings(agent.model, rest["model_settings"] or {}, models.chat.get(agent.model))
    blocks = [block_to_rest(attached) for attached in agent.blocks]
    managed = group(agent.managed_group) if agent.HasField("managed_group") else None
    rest |= {name: list(secrets) for name in SECRET_MEMBERS}
    rest |= {
        "embedding": agent.embedding or None,
        "model_settings": settings,
        "tool_rules": rest["tool_rules"] or [],
        "recall_passages": agent.recall_passages,
        "llm_config": llm_config(agent, models.chat.get(agent.model)),
        "embedding_config": embedding_config(agent.embedding, models),
        "blocks": blocks,
        "memory": _memory(rest["agent_type"], blocks, [file_block(one, file_chars) for one in agent.files]),
        "tools": [as_tool(attached) for attached in agent.tools],
        "sources": folders_of(agent.folders, models),
        "pending_approval": approval_request(agent.pending_approval) if agent.HasField("pending_approval") else None,
        "identities": [to_rest(each) for each in agent.identities],
        "identity_ids": [each.id for each in agent.identities],
        "managed_group": managed,
        "multi_agent_group": managed,
        "max_files_open": files_open,
        "per_file_view_window_char_limit": file_chars,
    }
    if include is not None:
        _leave_out(rest, include)
    if not sees_secrets():
        rest |= {name: [] for name in SECRET_MEMBERS}
    return rest


def folders_of(folders: Iterable[folder_pb2.Folder], models: Models) -> list[Rest]:
    """Folders attached to an agent, as REST."""
    return [
        folder_to_rest(one, embedding_config(one.embedding, models), to_public("org", current().organization_id))
        for one in folders
    ]


def model_settings(handle: str, settings: Rest, model: model_pb2.Model | None) -> Rest:
    """Returns the agent's `settings` over the defaults of its provider's shape, which are others where a client
    declared the shape itself.
    """
    provider_type = settings.get("provider_type") or _provider_type(handle, model)
    defaults: Rest = {
        "provider_type": provider_type,
        "max_output_tokens": _DECLARED_OUTPUT if _declares(settings) else model and usual_output_tokens(model),
        # Shown so by the reference, although its calls come one by one where nobody asks for more: see llm_config.
        "parallel_tool_calls": True,
        "temperature": 1.0,
    }
    match provider_type:
        case "openai":
            declared = _declares(settings)
            usual = (model.usual_reasoning_effort if model else "") or "minimal"
            defaults |= {
                "strict": declared,
                "reasoning": {"reasoning_effort": "high" if declared else usual},
                "response_format": None,
            }
        case "anthropic":
            defaults |= {
                "strict": False,
                "thinking": _usual_thinking(model),
                "effort": None,
                "verbosity": None,
                "response_format": None,
            }
    return defaults | settings


def usual_output_tokens(model: model_pb2.Model) -> int | None:
    """Returns the limit of a reply where the settings do not say; None where nobody knows it."""
    return min(model.max_output_tokens, _USUAL_OUTPUT) or None


def _declares(settings: Rest) -> bool:
    """Returns whether a client declared the shape of its settings, as `model_settings` of the API does."""
    return "provider_type" in settings


def _usual_thinking(model: model_pb2.Model | None) -> Rest:
    if model is None or not model.usual_thinking_budget:
        return {"type": "disabled"}
    return {"type": "enabled", "budget_tokens": model.usual_thinking_budget}


def llm_config(agent: agent_pb2.Agent, model: model_pb2.Model | None) -> Rest:
    """Returns the deprecated description of the agent's model."""
    sent: Rest = from_json(agent.model_settings_json) or {}
    settings = model_settings(agent.model, sent, model)
    provider, _, name = agent.model.partition("/")
    thinking = settings.get("thinking") or {}
    thinks = bool(model and model.usual_reasoning_effort)
    effort = (settings.get("reasoning") or {}).get("reasoning_effort")
    return {
        **dict.fromkeys(_LLM_CONFIG_NULLS),
        "handle": agent.model,
        "model": model.name if model else name,
        "display_name": None,
        "model_endpoint_type": _provider_type(agent.model, model),
        "model_endpoint": (model.endpoint or None) if model else None,
        "provider_name": model.provider_name if model else provider,
        "provider_category": provider_category(model) if model else "base",
        "context_window": agent.context_window_limit,
        "temperature": settings.get("temperature"),
        "max_tokens": settings.get("max_output_tokens"),
        "parallel_tool_calls": bool(sent.get("parallel_tool_calls", _declares(sent))),
        "response_format": settings.get("response_format"),
        "strict": settings.get("strict", False),
        "enable_reasoner": thinks or thinking.get("type") == "enabled",
        "reasoning_effort": effort if thinks or _declares(sent) else None,
        "max_reasoning_tokens": thinking.get("budget_tokens", 0),
        "effort": settings.get("effort"),
        "verbosity": settings.get("verbosity"),
        "put_inner_thoughts_in_kwargs": agent.agent_type in _THINKING_IN_ARGUMENTS,
        "return_logprobs": False,
        "return_token_ids": False,
    }


def embedding_config(handle: str, models: Models) -> Rest | None:
    """Returns the deprecated description of an embedding model; None without one."""
    if not handle:
        return None
    provider, _, name = handle.partition("/")
    model = models.embedding.get(handle)
    return {
        "handle": handle,
        "embedding_model": model.name if model else name,
        "embedding_endpoint_type": model.provider_type if model else provider,
        "embedding_endpoint": (model.endpoint or None) if model else None,
        "embedding_dim": model.dimensions if model else 0,
        "embedding_chunk_size": 300,
        "batch_size": 32,
        **dict.fromkeys(("azure_endpoint", "azure_version", "azure_deployment")),
    }


def provider_category(model: model_pb2.Model | model_pb2.EmbeddingModel) -> str:
    """Returns the category of the provider of a model: base or byok."""
    return enum_names(model_pb2.ProviderCategory.DESCRIPTOR).get(model.provider_category) or "base"


def _provider_type(handle: str, model: model_pb2.Model | None) -> str:
    return model.provider_type if model else handle.partition("/")[0]


def approval_request(pending: agent_pb2.PendingApproval) -> Rest:
    """Returns the request that waits, as the list of messages shows it."""
    calls = [message_pb2.ToolCall(**call) for call in from_json(pending.tool_calls_json) or ()]
    return message(
        message_pb2.Message(
            id=pending.request_id,
            date=pending.created_at,
            otid=pending.otid,
            step_id=pending.step_id,
            run_id=pending.run_id,
            approval_request_message=message_pb2.ApprovalRequestMessage(tool_calls=calls),
        )
    )


def _memory(agent_type: Any, blocks: Sequence[Rest] = (), file_blocks: Sequence[Rest] = ()) -> Rest:
    return {
        "blocks": blocks,
        "file_blocks": file_blocks,
        "agent_type": agent_type,
        "git_enabled": False,
        "prompt_template": "",
    }


def _leave_out(rest: Rest, include: frozenset[str]) -> None:
    for relation, names in RELATIONS.items():
        if relation not in include:
            for name in names:
                rest[name] = [] if isinstance(rest[name], list) else None
    if "agent.blocks" not in include:
        rest["memory"] = _memory(rest["agent_type"])
