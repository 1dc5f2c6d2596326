"""The round of a group as a turn: whose conversation it is, and what its run keeps of the group.

A group speaks in the default conversation of a hidden agent with the group's own UUID, made with its first message: so
its log, its line, its streams, lists and cancels are those of every conversation. Sleep-time groups have none: what is
said to them is said to their manager.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from services.agent.core.groups.plan import GroupPlan
from services.agent.core.ports_agents import AgentName
from services.agent.resources.groups.model import Group
from services.agent.resources.groups.ports import GroupStore
from services.common.context import CallContext
from services.common.errors import FailedPrecondition

_TENDING = "sleeptime"
_MANAGED = ("supervisor", "dynamic")


@dataclass(frozen=True, slots=True)
class GroupTurn:
    """The agent whose conversation it is, and the plan as Options.group; None where it is an agent's own turn."""

    agent_id: UUID
    plan: Mapping[str, Any] | None = None


class GroupLogs(Protocol):
    """Conversations of groups."""

    async def open(
        self, organization_id: UUID, user_id: UUID, group_id: UUID, agent_ids: Sequence[UUID]
    ) -> list[AgentName]:
        """Makes a group's conversation, once, and returns those of the agents that are there, in order."""
        ...


class GroupTurns:
    """Opens rounds."""

    def __init__(self, store: GroupStore, logs: GroupLogs) -> None:
        self._store = store
        self._logs = logs

    async def open(self, caller: CallContext, group_id: UUID) -> GroupTurn:
        """Raises NotFound (GROUP_NOT_FOUND), FailedPrecondition (GROUP_CANNOT_SPEAK)."""
        group = await self._store.get(caller.organization_id, group_id)
        if group.manager_type == _TENDING and group.manager_agent_id is not None:
            return GroupTurn(group.manager_agent_id)
        if group.manager_type == "voice_sleeptime":
            raise _cannot("Groups of the type voice_sleeptime take no turns; send the message to one of its agents.")
        wanted = [*group.agent_ids, *((group.manager_agent_id,) if group.manager_agent_id is not None else ())]
        there = await self._logs.open(caller.organization_id, caller.user_id, group_id, wanted)
        return GroupTurn(group_id, _plan(group, {each.id: each for each in there}).to_json())


def _plan(group: Group, there: Mapping[UUID, AgentName]) -> GroupPlan:
    members = tuple(there[agent_id] for agent_id in group.agent_ids if agent_id in there)
    manager = there.get(group.manager_agent_id) if group.manager_agent_id is not None else None
    if not members:
        raise _cannot("The group has no members, so nobody can speak; add agents to agent_ids.")
    if group.manager_type in _MANAGED and manager is None:
        raise _cannot("The group's manager is gone, so nobody can lead it; set manager_agent_id.")
    if manager in members:
        raise _cannot("The group's manager is also one of its members; take it out of agent_ids, or set another.")
    settings = group.manager_settings
    return GroupPlan(
        group.manager_type,  # type: ignore[arg-type] # those that take turns
        members,
        manager,
        settings.get("max_turns"),
        settings.get("termination_token", "DONE!"),
    )


def _cannot(sentence: str) -> FailedPrecondition:
    return FailedPrecondition(sentence, reason="GROUP_CANNOT_SPEAK")
