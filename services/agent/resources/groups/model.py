"""Groups: agents that work together. Pure.

settings = check(settings)     a new group's settings, their defaults filled in
group = change(group, draft)   the group with what an update names
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from services.common.core.drafts import Draft
from services.common.core.paging import Page
from services.common.core.refusals import Refused

_MOST = 2**31 - 1
_END = "DONE!"


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= 256


# What each manager type is set up with beside an agent; LETTA V1 API, groups.
_SETTINGS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "round_robin": {"max_turns": _is_count},
    "supervisor": {},
    "dynamic": {"termination_token": _is_token, "max_turns": _is_count},
    "sleeptime": {"sleeptime_agent_frequency": _is_count},
    "voice_sleeptime": {"max_message_buffer_length": _is_count, "min_message_buffer_length": _is_count},
    "swarm": {},
}
_UNMANAGED = frozenset({"round_robin", "swarm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """All that a client sets; see loci.agent.v1.Group."""

    description: str = ""
    agent_ids: tuple[UUID, ...] = ()
    manager_type: str = "round_robin"
    manager_agent_id: UUID | None = None
    manager_settings: Mapping[str, Any] = field(default_factory=dict)
    shared_block_ids: tuple[UUID, ...] = ()
    hidden: bool = False
    project_id: str | None = None
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None

    @property
    def agents(self) -> frozenset[UUID]:
        """All its agents, the manager too."""
        return frozenset((*self.agent_ids, *(() if self.manager_agent_id is None else (self.manager_agent_id,))))

    @property
    def shares(self) -> frozenset[tuple[UUID, UUID]]:
        """Each member with each block that they share."""
        return frozenset((agent_id, block_id) for agent_id in self.agent_ids for block_id in self.shared_block_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(GroupSettings):
    """A group as stored."""

    id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """A filter of groups; see loci.agent.v1.ListGroupsRequest."""

    page: Page
    manager_type: str | None = None
    project_id: str | None = None
    deployment_id: str | None = None
    agent_id: UUID | None = None
    show_hidden: bool = False


G = TypeVar("G", bound=GroupSettings)


def check(settings: G) -> G:
    """Returns the settings with the defaults of their manager. Raises Refused (GROUP_INVALID), naming the field."""
    if (settings.manager_agent_id is None) != (settings.manager_type in _UNMANAGED):
        needs = "has none" if settings.manager_type in _UNMANAGED else "is missing"
        raise invalid("manager_agent_id", f"{needs} with the manager type {settings.manager_type}")
    return replace(settings, manager_settings=_settings(settings.manager_type, settings.manager_settings))


def change(before: G, draft: Draft[GroupSettings]) -> G:
    """Returns `before` with the fields of the draft; raises as `check`.

    Manager settings are laid over those that are there where the manager type stays; with another type all begin anew.
    """
    values = {name: getattr(draft.values, name) for name in draft.names}
    if values.get("manager_type", before.manager_type) != before.manager_type:
        values.setdefault("manager_settings", {})
        if values["manager_type"] in _UNMANAGED:
            values.setdefault("manager_agent_id", None)
    elif "manager_settings" in values:
        values["manager_settings"] = {**before.manager_settings, **draft.values.manager_settings}
    return check(replace(before, **values))


def invalid(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field."""
    return Refused("GROUP_INVALID", f"{name} {problem}")


def _settings(manager_type: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    known = _SETTINGS[manager_type]
    checked = {name: value for name, value in settings.items() if value is not None}
    for name, value in checked.items():
        if name not in known:
            raise invalid(f"manager_config.{name[:80]}", f"is not for the manager type {manager_type}")
        if not known[name](value):
            expected = (
                "a text of 1 to 256 characters" if known[name] is _is_token else f"a whole number of 1 to {_MOST}"
            )
            raise invalid(f"manager_config.{name}", f"must be {expected}")
    if "termination_token" in known:
        checked.setdefault("termination_token", _END)
    least, most = (checked.get(f"{end}_message_buffer_length") for end in ("min", "max"))
    if least is not None and most is not None and least >= most:
        raise invalid("manager_config.min_message_buffer_length", f"must be below the greatest length, {most}")
    return checked
