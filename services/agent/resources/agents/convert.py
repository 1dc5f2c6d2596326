"""Agents <-> protobuf."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from uuid import UUID, uuid5

from loci.agent.v1 import agent_pb2, agent_service_pb2
from loci.memory.v1 import block_pb2
from services.agent.convert.fields import json_text
from services.agent.convert.first_messages import first_messages
from services.agent.core.messages import gated_calls, request_id, request_otid, system_message_id
from services.agent.core.rules.rule_json import rules_to_json
from services.agent.core.summaries.compaction_settings import settings_from_json, settings_to_json
from services.agent.resources.agents.model.checks import SettingValues, invalid, tool_rules
from services.agent.resources.agents.model.instructions import BLOCK_DESCRIPTIONS
from services.agent.resources.agents.model.settings import AgentSettings, LastRun, PendingApproval
from services.agent.resources.agents.model.sleeptime import PERSONA, PERSONA_DESCRIPTION, PERSONA_LABEL
from services.agent.resources.agents.model.state import AgentState, NewAgent
from services.agent.resources.agents.ports import AgentList, AgentOrder
from services.agent.resources.groups.convert import groups
from services.agent.resources.identities.convert import identities
from services.common.codec import Codec
from services.common.ids import from_public, ids_in, to_public, uuid7
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

_AGENTS_PER_PAGE = 50
# No settings: the tool runner keeps them.
_SECRETS = "secrets"
# No settings either, but rows of their own.
_IDENTITIES = "identity_ids"
_ORDERS: Mapping[int, AgentOrder] = {
    agent_service_pb2.AGENT_ORDER_UPDATED_AT: "updated_at",
    agent_service_pb2.AGENT_ORDER_LAST_RUN_COMPLETION: "last_run_completion",
}
_settings = Codec(AgentSettings, agent_pb2.Agent, leave=("tool_ids", "tool_rules", "compaction_settings"))
_lists = Codec(AgentList, agent_service_pb2.ListAgentsRequest, leave=("page", "order_by"))
_values = Codec(AgentSettings, agent_pb2.Agent, refuse=invalid, parsers={"tool_rules": tool_rules})


def agent_to_proto(state: AgentState) -> agent_pb2.Agent:
    """Returns an agent as clients see it."""
    agent, settings = state.agent, state.agent.settings
    wire = _settings.encode(
        settings,
        id=to_public("agent", agent.id),
        created_at=timestamp(agent.created_at),
        updated_at=timestamp(agent.updated_at),
        created_by_id=to_public("user", agent.created_by_id),
        last_updated_by_id=to_public("user", agent.last_updated_by_id),
        version=agent.version,
        blocks=state.blocks,
        tools=state.tools,
        folders=state.folders,
        files=state.files,
        message_ids=[to_public("message", each) for each in (system_message_id(agent.id), *agent.window)],
        tool_rules_json=json_text(rules_to_json(settings.tool_rules)),
        compaction_settings_json=_compaction(settings),
        identities=map(identities.encode, agent.identities),
    )
    if agent.managed_group is not None:
        wire.managed_group.CopyFrom(groups.encode(agent.managed_group))
    if agent.waiting is not None:
        wire.pending_approval.CopyFrom(pending_approval_to_proto(agent.waiting))
    if agent.last_run is not None:
        _put_last_run(wire, agent.last_run)
    return wire


def new_agent(request: agent_service_pb2.CreateAgentRequest) -> NewAgent:
    """Returns a request for an agent. Raises Refused (AGENT_INVALID), InvalidArgument (INVALID_ID)."""
    agent_id = from_public("agent", request.agent_id) if request.agent_id else uuid7()
    return NewAgent(
        agent_id=agent_id,
        settings=setting_values(request.agent),
        blocks=[_complete_block(block, agent_id, place) for place, block in enumerate(request.blocks)],
        block_ids=ids_in("block", request.block_ids),
        folder_ids=ids_in("source", request.folder_ids),
        identity_ids=ids_in("identity", request.agent.identity_ids),
        tool_names=tuple(request.tool_names),
        include_base_tools=not request.HasField("include_base_tools") or request.include_base_tools,
        include_base_tool_rules=(
            request.include_base_tool_rules if request.HasField("include_base_tool_rules") else None
        ),
        messages=first_messages(request.initial_messages),
        include_default_messages=not request.HasField("include_default_messages") or request.include_default_messages,
        secrets=dict(request.agent.secrets),
    )


def memory_persona(agent_id: UUID) -> block_pb2.Block:
    """Returns the draft of a partner's own block, the same when the request is repeated."""
    return block_pb2.Block(
        id=to_public("block", uuid5(agent_id, PERSONA_LABEL)),
        label=PERSONA_LABEL,
        value=PERSONA,
        description=PERSONA_DESCRIPTION,
    )


def setting_values(wire: agent_pb2.Agent, paths: Iterable[str] | None = None) -> SettingValues:
    """Returns what a client sets: at creation all that is there, in a change what `paths` name.

    Raises Refused (AGENT_INVALID), InvalidArgument (INVALID_ID, UPDATE_MASK_INVALID).
    """
    names = None if paths is None else [path for path in paths if path not in (_SECRETS, _IDENTITIES)]
    return _values.values(wire, names)


def secrets(request: agent_service_pb2.UpdateAgentRequest) -> dict[str, str] | None:
    """Returns all secrets that there are to be; None where an update leaves them."""
    return dict(request.agent.secrets) if _SECRETS in request.update_mask.paths else None


def identity_ids(request: agent_service_pb2.UpdateAgentRequest) -> tuple[UUID, ...] | None:
    """All identities that it shall serve; None where an update leaves them. Raises InvalidArgument (INVALID_ID)."""
    return ids_in("identity", request.agent.identity_ids) if _IDENTITIES in request.update_mask.paths else None


def agent_list(request: agent_service_pb2.ListAgentsRequest) -> AgentList:
    """Returns which agents to list. Raises Refused, InvalidArgument."""
    page = page_by_id(request.page, "agent", _AGENTS_PER_PAGE)
    return _lists.decode(request, page=page, order_by=_ORDERS.get(request.order_by, "created_at"))


def stop_reason(word: str | None) -> "agent_pb2.StopReason.ValueType":
    """Returns a stored stop reason; UNSPECIFIED for none."""
    return agent_pb2.StopReason.Value(f"STOP_REASON_{(word or 'unspecified').upper()}")


def _put_last_run(wire: agent_pb2.Agent, run: LastRun) -> None:
    wire.last_run_completion.CopyFrom(timestamp(run.completed_at))
    wire.last_run_duration_ms = round((run.completed_at - run.created_at).total_seconds() * 1_000)
    wire.last_stop_reason = stop_reason(run.stop_reason)


def _compaction(settings: AgentSettings) -> str:
    if settings.compaction_settings:
        compaction = settings_from_json(settings.compaction_settings)
        return json_text(settings_to_json(compaction, agent_model=settings.model))
    return _usual_compaction(settings.model)


@lru_cache(1_000)
def _usual_compaction(model: str) -> str:
    return json_text(settings_to_json(settings_from_json({}), agent_model=model))


def pending_approval_to_proto(waiting: PendingApproval) -> agent_pb2.PendingApproval:
    """Returns what waits as clients see it."""
    message = waiting.message
    calls = [{"name": call.name, "arguments": call.arguments, "tool_call_id": call.id} for call in gated_calls(message)]
    wire = agent_pb2.PendingApproval(
        request_id=to_public("message", request_id(message.id)),
        otid=request_otid(message.id),
        created_at=timestamp(message.created_at),
        tool_calls_json=json_text(calls),
    )
    if message.run_id is not None:
        wire.run_id = to_public("run", message.run_id)
    if message.step_id is not None:
        wire.step_id = to_public("step", message.step_id)
    if waiting.due_at is not None:
        wire.due_at.CopyFrom(timestamp(waiting.due_at))
    return wire


def _complete_block(block: block_pb2.Block, agent_id: UUID, place: int) -> block_pb2.Block:
    """Returns a draft with an id, the same when the request is repeated, and with the description of a usual label."""
    completed = block_pb2.Block()
    completed.CopyFrom(block)
    completed.id = block.id or to_public("block", uuid5(agent_id, f"block-{place}"))
    if not block.HasField("description") and block.label in BLOCK_DESCRIPTIONS:
        completed.description = BLOCK_DESCRIPTIONS[block.label]
    return completed
