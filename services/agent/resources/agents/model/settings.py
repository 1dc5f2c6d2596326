"""What an agent is, and what may be set on it. Pure.

draft = check(draft)                      what a client wants, without what cannot be stored (drafts.py)
settings = begin(draft, ...)              a new agent's settings, defaults filled in
settings = change(settings, draft, ...)   those fields of the draft that an update names
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.facts import Settings
from services.agent.core.messages import Message
from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.resources.agents.model.base_tools import LETTA_V1_AGENT
from services.agent.resources.agents.model.drafts import AgentDraft, check_tools, invalid
from services.agent.resources.agents.model.instructions import INSTRUCTIONS
from services.agent.resources.agents.model.names import random_name
from services.agent.resources.groups.model import Group
from services.agent.resources.identities.model import Identity
from services.common.file_limits import file_limits
from services.common.refusals import Refused

# Beyond this a model's window is left unused unless the client asks for it: long prompts are slow and dear.
LARGEST_DEFAULT_WINDOW = 128_000
HIDING_TAG = "role:subagent"


@dataclass(frozen=True, slots=True)
class Defaults:
    """Handles that an agent gets when its client names none."""

    model: str
    embedding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """All that can be set on an agent; see loci.agent.v1.Agent. The limit of the window is in tokens.

    `compaction_settings` are as the client gave them; None: the defaults.
    """

    name: str
    description: str | None = None
    agent_type: str = LETTA_V1_AGENT
    system: str
    model: str
    embedding: str
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    response_format: Mapping[str, Any] | None = None
    context_window_limit: int
    tool_ids: tuple[UUID, ...] = ()
    tool_rules: tuple[ToolRule, ...] = ()
    compaction_settings: Mapping[str, Any] | None = None
    message_buffer_autoclear: bool = False
    max_files_open: int | None = None
    per_file_view_window_char_limit: int | None = None
    recall_passages: int = 0
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timezone: str = "UTC"
    hidden: bool = False
    project_id: str | None = None
    enable_sleeptime: bool = False
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    entity_id: str | None = None

    @property
    def file_limits(self) -> tuple[int, int]:
        """Files that may be open at once, and characters in view of each."""
        return file_limits(self.context_window_limit, self.max_files_open, self.per_file_view_window_char_limit)


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run that has ended."""

    stop_reason: str | None
    created_at: datetime
    completed_at: datetime


@dataclass(frozen=True, slots=True)
class Waiting:
    """The message whose calls wait for the client; at `due_at` they are answered without one, None: never."""

    message: Message
    due_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent as stored. `window`: the messages in its default conversation's window, oldest first.

    identities: whom it serves, in the order of attachment, without their agents and blocks.
    """

    id: UUID
    version: int
    settings: AgentSettings
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
    window: tuple[UUID, ...] = ()
    last_run: LastRun | None = None
    waiting: Waiting | None = None
    identities: tuple[Identity, ...] = ()
    managed_group: Group | None = None


SETTABLE = tuple(each.name for each in fields(AgentSettings))


def begin(
    draft: AgentDraft,
    tool_ids: Iterable[UUID],
    tool_rules: Iterable[ToolRule] = (),
    *,
    window: int,
    defaults: Defaults,
) -> AgentSettings:
    """A new agent's settings from a checked draft; `window`: tokens of its model's window.

    Raises Refused (AGENT_INVALID).
    """
    values = _values(draft, draft.agent_type or LETTA_V1_AGENT, defaults)
    values |= {"tool_rules": tuple(tool_rules), "context_window_limit": _limit(draft.context_window_limit, window)}
    return with_tools(AgentSettings(**values), tool_ids)


def change(
    before: AgentSettings, draft: AgentDraft, mask: frozenset[str], *, window: int, defaults: Defaults
) -> AgentSettings:
    """`before` with the fields of `mask` as in a checked draft; those that are not given become defaults again.

    `window`: tokens of the window of the model after the change. With another model the limit of the window is that
    model's default, unless the mask names it. Raises Refused (AGENT_INVALID).
    """
    values = _values(draft, before.agent_type, defaults)
    after = replace(before, **{name: values[name] for name in mask if name in values})
    if "context_window_limit" in mask:
        return replace(after, context_window_limit=_limit(draft.context_window_limit, window))
    if after.model != before.model:
        return replace(after, context_window_limit=_limit(None, window))
    return after


def with_tools(settings: AgentSettings, tool_ids: Iterable[UUID]) -> AgentSettings:
    """`settings` with these tools. Raises Refused (AGENT_INVALID)."""
    tool_ids = unique(tool_ids)
    check_tools(tool_ids)
    return replace(settings, tool_ids=tool_ids)


def settings_of(agent: Agent) -> Settings:
    """What is done for an agent outside of a run goes by; a run keeps those it began with."""
    settings = agent.settings
    return Settings(
        agent_version=agent.version,
        model=settings.model,
        embedding=settings.embedding,
        system=settings.system,
        context_window_limit=settings.context_window_limit,
        agent_type=settings.agent_type,
        tool_ids=settings.tool_ids,
        tool_rules=settings.tool_rules,
        timezone=settings.timezone,
        max_files_open=settings.max_files_open,
        per_file_view_window_char_limit=settings.per_file_view_window_char_limit,
    )


def check_mask(names: Iterable[str]) -> frozenset[str]:
    """Names of settings that an update changes. Raises Refused (UPDATE_MASK_INVALID)."""
    mask = frozenset(names)
    if unknown := sorted(mask - set(SETTABLE) | mask & {"agent_type"}):
        sentence = f"update_mask names what cannot be changed on an agent: {', '.join(unknown)[:200]}"
        raise Refused("UPDATE_MASK_INVALID", sentence)
    return mask


def unique(ids: Iterable[UUID]) -> tuple[UUID, ...]:
    """The ids in order, each once."""
    return tuple(dict.fromkeys(ids))


def _values(draft: AgentDraft, agent_type: str, defaults: Defaults) -> dict[str, Any]:
    """Every setting but the limit of the window, which depends on the model."""
    return {
        "name": draft.name or random_name(),
        "description": draft.description,
        "agent_type": agent_type,
        "system": INSTRUCTIONS[agent_type] if draft.system is None else draft.system,
        "model": draft.model or defaults.model,
        "embedding": draft.embedding or defaults.embedding,
        "model_settings": draft.model_settings or {},
        "response_format": draft.response_format or None,
        "tool_ids": draft.tool_ids,
        "tool_rules": draft.tool_rules or (),
        "compaction_settings": draft.compaction_settings or None,
        "message_buffer_autoclear": bool(draft.message_buffer_autoclear) or POLICIES[agent_type].autoclear,
        "max_files_open": draft.max_files_open,
        "per_file_view_window_char_limit": draft.per_file_view_window_char_limit,
        "recall_passages": draft.recall_passages or 0,
        "tags": draft.tags,
        "metadata": draft.metadata or {},
        "timezone": draft.timezone or "UTC",
        "hidden": bool(draft.hidden) or HIDING_TAG in draft.tags,
        "project_id": draft.project_id,
        "enable_sleeptime": bool(draft.enable_sleeptime),
        "template_id": draft.template_id,
        "base_template_id": draft.base_template_id,
        "deployment_id": draft.deployment_id,
        "entity_id": draft.entity_id,
    }


def _limit(wanted: int | None, window: int) -> int:
    if wanted is None:
        return min(window, LARGEST_DEFAULT_WINDOW)
    if wanted > window:
        raise invalid("context_window_limit", f"is {wanted}; the model's window has {window} tokens")
    return wanted
