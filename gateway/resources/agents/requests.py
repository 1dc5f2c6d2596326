"""Creating and changing agents."""

from typing import Annotated, Any, Literal

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import AfterValidator, AliasChoices, Field
from pydantic_core import PydanticCustomError

from gateway.agent_files.templates import TemplateValues
from gateway.errors.invalid import EXAMPLE_UUID
from gateway.resources.blocks.requests import BlockBody
from gateway.resources.messages.content import parts
from gateway.resources.messages.requests import CompactionSettings, MessageCreate
from gateway.rest import old_names
from gateway.rest.body import ENUM, Body, Int32, Json, Positive, deprecated, dump, refuse, sent_fields
from gateway.rest.old_names import BodyWithOldNames
from gateway.rest.request_model import RequestModel
from loci.agent.v1 import agent_pb2, agent_service_pb2, message_pb2
from services.common.errors import InvalidArgument
from services.common.fields import When, enum_numbers, settable_fields
from services.common.ids import to_public, uuid7

AgentTypeName = Annotated[
    Literal[
        "memgpt_agent",
        "memgpt_v2_agent",
        "letta_v1_agent",
        "react_agent",
        "workflow_agent",
        "split_thread_agent",
        "sleeptime_agent",
        "voice_convo_agent",
        "voice_sleeptime_agent",
    ],
    ENUM,
]


def _handle(value: str) -> str:
    provider, slash, model = value.partition("/")
    if not (provider and slash and model):
        raise ValueError("a model is named provider/model, for example openai/gpt-4o-mini")
    return value


Handle = Annotated[str, AfterValidator(_handle)]
_ROLES = {
    "user": message_pb2.MESSAGE_ROLE_USER,
    "system": message_pb2.MESSAGE_ROLE_SYSTEM,
    "assistant": message_pb2.MESSAGE_ROLE_ASSISTANT,
}
_NOT_YET_AT_CREATION: dict[str, str] = {
    "include_default_source": "no folder is made with an agent; give folder_ids, or leave it out",
    "template": "templates are made with templates.create, of an agent that is there",
    "memory_variables": "they fill in a template; give from_template, or write the texts as they shall be",
}
MULTI_AGENT_TOOLS = (
    "send_message_to_agent_and_wait_for_reply",
    "send_message_to_agents_matching_tags",
    "send_message_to_agent_async",
)
# What an agent of a template may be given beside it.
_BESIDE_TEMPLATE = frozenset(
    (
        "from_template", "memory_variables", "name", "tags", "secrets", "tool_exec_environment_variables",
        "identity_ids", "model", "embedding", "project_id", "project", "initial_message_sequence",
    )
)  # fmt: skip

# An agent's fields have the names that the body's have; these two are made otherwise.
_DRAFT = {field.wire for field in settable_fields(agent_pb2.Agent.DESCRIPTOR, When.CREATION).values()} - {
    "agent_type",
    "model_settings_json",
}
_MOST_FILES_OPEN = 1_000
# Anthropic's least budget, and the reference's default.
_LEAST_THINKING_TOKENS = 1_024


_RESPONSE_FORMATS = ("text", "json_object", "json_schema")


def _known_form(value: Json) -> Json:
    if value and value.get("type") not in _RESPONSE_FORMATS:
        context = {"expected": ", ".join(_RESPONSE_FORMATS)}
        raise PydanticCustomError("union_tag_invalid", "Input should have a type among: {expected}", context)
    return value


ResponseFormat = Annotated[Json, AfterValidator(_known_form)]
BlockIdInBody = Annotated[
    str, Field(min_length=len(f"block-{EXAMPLE_UUID}"), pattern="^block-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
]


class ModelConfig(Body):
    """The deprecated llm_config and embedding_config, of which the handle counts, and little besides."""

    handle: str | None = None
    context_window: Positive | None = None
    temperature: float | None = None
    max_tokens: int | None = None


class AgentSettings(
    BodyWithOldNames,
    RequestModel,
    of=agent_pb2.Agent,
    when=When.CHANGE,
    leave=("deployment_id", "entity_id"),
):
    """Fields that creation and change share: those that an agent declares, and those beside it or read here."""

    old_names = old_names.AGENT
    name: str | None = None
    model: str | None = None
    embedding: str | None = None
    model_settings: Json | None = None
    response_format: ResponseFormat | None = None
    compaction_settings: CompactionSettings | None = None
    max_files_open: Int32 | None = Field(None, description="At most 1,000.")
    tags: list[str] | None = None
    project_id: str | None = None
    tool_ids: list[str] | None = None
    block_ids: list[BlockIdInBody] | None = None
    llm_config: ModelConfig | None = deprecated()
    embedding_config: ModelConfig | None = deprecated()
    max_tokens: Positive | None = deprecated()
    max_reasoning_tokens: int | None = deprecated()
    enable_reasoner: bool | None = deprecated()
    reasoning: bool | None = deprecated()
    parallel_tool_calls: bool | None = deprecated()
    recall_passages: Annotated[int, Field(ge=0, le=50)] | None = Field(
        None, description="Loci's own: how many passages of its archives each turn is shown for its message."
    )
    folder_ids: list[str] | None = None
    source_ids: list[str] | None = deprecated()
    identity_ids: list[str] | None = None
    secrets: dict[str, str] | None = Field(None, repr=False)
    tool_exec_environment_variables: dict[str, str] | None = deprecated()


class CreateAgent(AgentSettings):
    """Body of agents.create."""

    agent_type: AgentTypeName = "letta_v1_agent"
    memory_blocks: list[BlockBody] | None = None
    tools: list[str] | None = Field(None, description="Names of tools to attach.")
    include_base_tools: bool | None = True
    include_base_tool_rules: bool | None = None
    include_multi_agent_tools: bool | None = False
    include_default_source: bool | None = False
    initial_message_sequence: list[MessageCreate] | None = None
    embedding_chunk_size: int | None = deprecated()
    from_template: str | None = deprecated()
    template: bool | None = deprecated()
    project: str | None = deprecated()
    memory_variables: dict[str, str] | None = deprecated()


class UpdateAgent(AgentSettings):
    """Body of agents.update: only what is sent changes."""

    message_ids: list[str] | None = None


class ToolApproval(Body):
    """Body of agents.tools.update_approval. The TypeScript client sends its own name of the field."""

    requires_approval: bool = Field(validation_alias=AliasChoices("requires_approval", "body_requires_approval"))


class ResetMessages(Body):
    """Body of agents.messages.reset. The messages that older types begin with are not added again."""

    add_default_initial_messages: bool = False


def create_request(body: CreateAgent) -> agent_service_pb2.CreateAgentRequest:
    """Returns the request of CreateAgent, ids minted, so that it may be sent twice. Not for one of a template; see
    `filling`.

    Raises InvalidRequest.
    """
    refuse(body, _NOT_YET_AT_CREATION)
    draft = settings_draft(body, {})
    if "agent_type" in body.model_fields_set:
        draft.agent_type = enum_numbers(agent_pb2.AgentType.DESCRIPTOR)[body.agent_type]  # type: ignore[assignment]
    return agent_service_pb2.CreateAgentRequest(
        agent_id=to_public("agent", uuid7()),
        agent=draft,
        blocks=[block.block() for block in body.memory_blocks or ()],
        block_ids=body.block_ids,
        folder_ids=folder_ids(body),
        tool_names=[*(body.tools or ()), *(MULTI_AGENT_TOOLS if body.include_multi_agent_tools else ())],
        include_base_tools=body.include_base_tools is not False,
        include_base_tool_rules=body.include_base_tool_rules,
        initial_messages=map(_first_message, body.initial_message_sequence or ()),
        include_default_messages=body.initial_message_sequence is None,
    )


def filling(body: CreateAgent) -> TemplateValues:
    """Returns the settings of the agent beside its template. Raises InvalidRequest for one that the template has."""
    reason = "the template says it; change the agent that is made of it, or leave out from_template"
    refuse(body, dict.fromkeys(sorted(body.model_fields_set - _BESIDE_TEMPLATE), reason))
    return TemplateValues(
        name=body.name,
        variables=body.memory_variables or {},
        secrets=secrets(body) or {},
        messages=[message.model_dump(mode="json") for message in body.initial_message_sequence or ()],
        tags=tuple(body.tags or ()),
        identity_ids=tuple(body.identity_ids or ()),
        model=body.model,
        embedding=body.embedding,
        project_id=body.project_id,
    )


def update_request(agent_id: str, body: UpdateAgent, settings: Json) -> agent_service_pb2.UpdateAgentRequest | None:
    """Returns the request of UpdateAgent; None when nothing changes. `settings`: the agent's model settings. Raises
    InvalidRequest.
    """
    refuse(body, {"message_ids": "the window cannot be set; send messages, or make a new agent"})
    draft = settings_draft(body, settings)
    paths = [field.name for field, _ in draft.ListFields()]
    # A list that is sent empty clears what is there, and protobuf cannot tell it from one that is not sent.
    paths += [name for name in ("tags", "tool_ids", "identity_ids") if getattr(body, name) == []]
    if secrets(body) == {}:
        paths.append("secrets")
    if not paths:
        return None
    return agent_service_pb2.UpdateAgentRequest(agent_id=agent_id, agent=draft, update_mask=FieldMask(paths=paths))


def secrets(body: AgentSettings) -> dict[str, str] | None:
    """Returns all secrets that there shall be, in the newer field or the older one; None where neither is sent."""
    return body.tool_exec_environment_variables if body.secrets is None else body.secrets


def folder_ids(body: AgentSettings) -> list[str] | None:
    """Returns the folders that shall be attached, in the newer field or the older one; None where neither is sent."""
    return body.source_ids if body.folder_ids is None else body.folder_ids


def needs_settings(body: UpdateAgent) -> bool:
    """Returns whether the change adds to model settings that it does not send."""
    return body.model_settings is None and bool(_deprecated_settings(body))


def settings_draft(body: AgentSettings, settings: Json) -> agent_pb2.Agent:
    """Returns the settings in `body`; what deprecated fields say of the model is laid over `settings`."""
    sent = sent_fields(body)
    fields: Json = {name: value for name, value in sent.items() if name in _DRAFT}
    if (body.max_files_open or 0) > _MOST_FILES_OPEN:
        raise InvalidArgument(f"max_files_open cannot exceed {_MOST_FILES_OPEN}.", reason="FILES_OPEN_TOO_MANY")
    if body.compaction_settings is not None:
        sent["compaction_settings"] = body.compaction_settings.model_dump(exclude_unset=True)
    fields |= {f"{name}_json": dump(value) for name, value in sent.items() if f"{name}_json" in _DRAFT}
    if variables := secrets(body):
        fields["secrets"] = variables
    llm, embedding = body.llm_config, body.embedding_config
    if llm is not None and llm.handle and "model" not in fields:
        fields["model"] = llm.handle
        if llm.context_window:
            fields.setdefault("context_window_limit", llm.context_window)
    if embedding is not None and embedding.handle:
        fields.setdefault("embedding", embedding.handle)
    extra = _deprecated_settings(body)
    if body.model_settings is not None or extra:
        fields["model_settings_json"] = dump(
            {**settings, **_shape(body.model_settings), **extra, **(body.model_settings or {})}
        )
    return agent_pb2.Agent(agent_type=agent_pb2.AGENT_TYPE_UNSPECIFIED, **fields)


def _first_message(message: MessageCreate) -> message_pb2.InputMessage:
    return message_pb2.InputMessage(
        role=_ROLES[message.role],
        content=parts(message.content),
        name=message.name,
        otid=message.otid,
        sender_id=message.sender_id,
    )


def _deprecated_settings(body: AgentSettings) -> Json:
    """Returns the model settings that the fields of before stand for."""
    settings: Json = {}
    llm = body.llm_config
    if llm is not None and llm.handle:
        settings |= _present(temperature=llm.temperature, max_output_tokens=llm.max_tokens)
    settings |= _present(max_output_tokens=body.max_tokens, parallel_tool_calls=body.parallel_tool_calls)
    handle = body.model or (llm.handle if llm else None) or ""
    wants = body.enable_reasoner if body.enable_reasoner is not None else body.reasoning
    # Other providers' models think or do not by themselves.
    if wants is not None and handle.startswith("anthropic/"):
        budget = body.max_reasoning_tokens or _LEAST_THINKING_TOKENS
        settings["thinking"] = {"type": "enabled", "budget_tokens": budget} if wants else {"type": "disabled"}
    return settings


def _shape(settings: Json | None) -> Json:
    """Returns what settings of a provider's shape say where a client leaves it out; an agent without any has others."""
    match (settings or {}).get("provider_type"):
        case None:
            return {}
        case "openai":
            return {"parallel_tool_calls": True, "temperature": 0.7}
        case _:
            return {"parallel_tool_calls": True}


def _present(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
