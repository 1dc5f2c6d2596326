"""A group as a run keeps it: its kind, its members and its settings at the time of the request. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

from services.agent.core.ports_agents import AgentName

Kind = Literal["round_robin", "supervisor", "dynamic", "swarm"]


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """Who can speak, in order, and under which rules. `manager` leads supervisor and dynamic groups."""

    kind: Kind
    members: tuple[AgentName, ...]
    manager: AgentName | None = None
    max_turns: int | None = None
    termination_token: str = "DONE!"

    def named(self, name: str) -> AgentName | None:
        """Returns the member of this name; see `names`."""
        return next((each for each, label in zip(self.members, self.names, strict=True) if label == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """The members' names, each once: of two with one name the second is also known by its id."""
        first = {each.name: each for each in reversed(self.members)}
        return tuple(
            each.name if first[each.name] is each else f"{each.name} (agent-{each.id})" for each in self.members
        )

    def member(self, agent_id: UUID) -> AgentName | None:
        """Returns the member with this id."""
        return next((each for each in self.members if each.id == agent_id), None)

    def to_json(self) -> dict[str, Any]:
        """Returns the stored form."""
        return {
            "kind": self.kind,
            "members": [[str(each.id), each.name] for each in self.members],
            "manager": None if self.manager is None else [str(self.manager.id), self.manager.name],
            "max_turns": self.max_turns,
            "termination_token": self.termination_token,
        }


def plan_from_json(stored: Mapping[str, Any]) -> GroupPlan:
    """Returns a plan from its stored form."""
    manager = stored["manager"]
    return GroupPlan(
        cast(Kind, stored["kind"]),
        tuple(AgentName(UUID(agent_id), name) for agent_id, name in stored["members"]),
        None if manager is None else AgentName(UUID(manager[0]), manager[1]),
        stored["max_turns"],
        stored["termination_token"],
    )
