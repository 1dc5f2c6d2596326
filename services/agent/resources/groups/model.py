"""Agents that work together, and what may be set on a group. Pure.

draft = check(draft)                 what a client wants, as it can be stored
draft = change(group, draft, mask)   those fields of it that an update names, over what the group is
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.refusals import Refused
from services.common.paging import Page
from services.common.storable import parsed, storable

LONGEST = 10_000
MOST_MEMBERS = 1_000
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
class GroupDraft:
    """What a client sets; see loci.agent.v1.GroupDraft."""

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


@dataclass(frozen=True, slots=True)
class Group:
    """As stored."""

    id: UUID
    settings: GroupDraft
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupList:
    """Which groups to list; see loci.agent.v1.ListGroupsRequest."""

    page: Page
    manager_type: str | None = None
    project_id: str | None = None
    deployment_id: str | None = None
    agent_id: UUID | None = None
    show_hidden: bool = False


SETTABLE = frozenset(each.name for each in fields(GroupDraft))


def check(draft: GroupDraft) -> GroupDraft:
    """The draft as it can be stored, nothing twice. Raises Refused (GROUP_INVALID), naming the field."""
    draft = _storable(draft)
    if len(draft.description) > LONGEST:
        raise invalid("description", f"must have at most {LONGEST} characters, not {len(draft.description)}")
    for name in ("agent_ids", "shared_block_ids"):
        if len(getattr(draft, name)) > MOST_MEMBERS:
            raise invalid(name, f"has {len(getattr(draft, name))} ids; a group has at most {MOST_MEMBERS}")
    if draft.manager_type not in _SETTINGS:
        raise invalid("manager_type", f"must be one of: {', '.join(_SETTINGS)}")
    if (draft.manager_agent_id is None) != (draft.manager_type in _UNMANAGED):
        needs = "has none" if draft.manager_type in _UNMANAGED else "is missing"
        raise invalid("manager_agent_id", f"{needs} with the manager type {draft.manager_type}")
    return replace(draft, manager_settings=_settings(draft.manager_type, draft.manager_settings))


def change(before: GroupDraft, draft: GroupDraft, mask: frozenset[str]) -> GroupDraft:
    """`before` with the fields of `mask` as in `draft`; raises as `check`.

    Settings are laid over those that are there where the manager type stays; with another type all begin anew.
    """
    values = {name: getattr(draft, name) for name in mask}
    if values.get("manager_type", before.manager_type) != before.manager_type:
        values.setdefault("manager_settings", {})
        if values["manager_type"] in _UNMANAGED:
            values.setdefault("manager_agent_id", None)
    elif "manager_settings" in mask:
        values["manager_settings"] = {**before.manager_settings, **draft.manager_settings}
    return check(replace(before, **values))


def check_mask(names: Iterable[str]) -> frozenset[str]:
    """Names of fields that an update changes. Raises Refused (UPDATE_MASK_INVALID)."""
    mask = frozenset(names)
    if unknown := sorted(mask - SETTABLE):
        sentence = f"update_mask names what cannot be changed on a group: {', '.join(unknown)[:200]}"
        raise Refused("UPDATE_MASK_INVALID", sentence)
    return mask


def manager_settings(text: str) -> Mapping[str, Any]:
    """The settings in a client's text; an empty text is none. Raises Refused (GROUP_INVALID)."""
    try:
        value = parsed(text or "{}")
    except ValueError as error:
        raise invalid("manager_settings", f"must be a JSON object; {error}") from None
    if not isinstance(value, dict):
        raise invalid("manager_settings", f"must be a JSON object, not a {type(value).__name__}")
    return value


def invalid(name: str, problem: str) -> Refused:
    """A refusal that names a field."""
    return Refused("GROUP_INVALID", f"{name} {problem}")


def _settings(manager_type: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    known = _SETTINGS[manager_type]
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        if name not in known:
            raise invalid(f"manager_config.{name[:80]}", f"is not for the manager type {manager_type}")
        if not known[name](value):
            wanted = "a text of 1 to 256 characters" if known[name] is _is_token else f"a whole number of 1 to {_MOST}"
            raise invalid(f"manager_config.{name}", f"must be {wanted}")
    if "termination_token" in known:
        found.setdefault("termination_token", _END)
    least, most = (found.get(f"{end}_message_buffer_length") for end in ("min", "max"))
    if least is not None and most is not None and least >= most:
        raise invalid("manager_config.min_message_buffer_length", f"must be below the greatest length, {most}")
    return found


def _storable(draft: GroupDraft) -> GroupDraft:
    values = {name: getattr(draft, name) for name in SETTABLE}
    texts: dict[str, Any] = {name: storable(value) for name, value in values.items() if isinstance(value, str)}
    return replace(
        draft,
        **texts,
        agent_ids=tuple(dict.fromkeys(draft.agent_ids)),
        shared_block_ids=tuple(dict.fromkeys(draft.shared_block_ids)),
    )
