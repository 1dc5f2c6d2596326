"""The agent that tends another's memory while that one rests, and the group of both. Pure.

Source: LETTA V1 API, create agent: `enable_sleeptime`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID, uuid5

from services.agent.resources.agents.model.checks import SettingValues
from services.agent.resources.agents.model.settings import Agent, AgentSettings
from services.agent.resources.groups.model import GroupSettings

PERSONA_LABEL = "memory_persona"
PERSONA_DESCRIPTION = "Who you are when you tend this memory, and how you go about it."
PERSONA = (
    "I keep the memory of another agent. I read what it and its people said, and I write what will matter later into "
    "the blocks that we share: short, true and without repetition."
)
_TYPE = "sleeptime_agent"
_SUFFIX = "-sleeptime"
_LONGEST_NAME = 256
# Of the first agent's turns, one in so many is thought over.
_FREQUENCY = 5
# Both think with the same model, and belong to the same project.
_COMMON = ("model", "model_settings", "embedding", "context_window_limit", "project_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """An agent that tends another's memory, and the group of both."""

    agent_id: UUID
    settings: AgentSettings
    group_id: UUID
    group: GroupSettings


def has_partner(settings: AgentSettings) -> bool:
    """Returns whether a new agent with these settings gets a partner."""
    return bool(settings.enable_sleeptime and settings.embedding)


def lacks_partner(agent: Agent, values: SettingValues) -> bool:
    """Returns whether a change with these values gives the agent a partner: it asks for one, and none is there."""
    return bool(values.get("enable_sleeptime")) and has_partner(agent.settings) and agent.managed_group is None


def ids_at_creation(agent_id: UUID) -> tuple[UUID, UUID]:
    """Returns the ids of the partner and the group of a new agent, the same when the request is repeated."""
    return uuid5(agent_id, "sleeptime"), uuid5(agent_id, "sleeptime-group")


def partner_values(settings: AgentSettings) -> SettingValues:
    """Returns what is set on the partner of an agent; all else is usual for its type."""
    name = settings.name[: _LONGEST_NAME - len(_SUFFIX)] + _SUFFIX
    return {"name": name, "agent_type": _TYPE} | {each: getattr(settings, each) for each in _COMMON}


def needs_persona(labels: Iterable[str]) -> bool:
    """Returns whether the partner gets a block of its own beside those with these labels: no agent has two of one."""
    return PERSONA_LABEL not in labels


def group_of(agent_id: UUID, partner_id: UUID) -> GroupSettings:
    """Returns the group of an agent and its partner."""
    return GroupSettings(
        agent_ids=(partner_id,),
        manager_type="sleeptime",
        manager_agent_id=agent_id,
        manager_settings={"sleeptime_agent_frequency": _FREQUENCY},
    )
