"""Agents and their settings. Pure.

values = check(values)                     what a client sets, by field (checks.py)
settings = begin(values, ...)              a new agent's settings, defaults filled in
settings = change(settings, values, ...)   the settings with what an update names
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core.facts import Settings
from services.agent.core.messages import Message
from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import ToolRule
from services.agent.resources.agents.model.base_tools import LETTA_V1_AGENT
from services.agent.resources.agents.model.checks import SettingValues, check_tools, invalid
from services.agent.resources.agents.model.instructions import INSTRUCTIONS
from services.agent.resources.agents.model.names import random_name
from services.agent.resources.groups.model import Group
from services.agent.resources.identities.model import Identity
from services.common.core.file_limits import file_limits

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

    `compaction_settings` are as the client gave them; None: the defaults. `metadata`, `hidden` and `enable_sleeptime`
    are None where no client set them, which counts as empty and false.
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
    metadata: Mapping[str, Any] | None = None
    timezone: str = "UTC"
    hidden: bool | None = None
    project_id: str | None = None
    enable_sleeptime: bool | None = None
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
class PendingApproval:
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
    waiting: PendingApproval | None = None
    identities: tuple[Identity, ...] = ()
    managed_group: Group | None = None


SETTABLE = tuple(each.name for each in fields(AgentSettings))
_DEFAULTS: Mapping[str, Any] = {
    each.name: each.default for each in fields(AgentSettings) if each.default is not MISSING
}


def begin(
    values: SettingValues,
    tool_ids: Iterable[UUID],
    tool_rules: Iterable[ToolRule] = (),
    *,
    window: int,
    defaults: Defaults,
) -> AgentSettings:
    """Returns a new agent's settings from checked values; `window`: tokens of its model's window.

    Raises Refused (AGENT_INVALID).
    """
    stored = _stored({**dict.fromkeys(SETTABLE), **values}, values.get("agent_type") or LETTA_V1_AGENT, defaults)
    stored |= {
        "tool_rules": tuple(tool_rules),
        "context_window_limit": _limit(values.get("context_window_limit"), window),
    }
    return with_tools(AgentSettings(**stored), tool_ids)


def change(before: AgentSettings, values: SettingValues, *, window: int, defaults: Defaults) -> AgentSettings:
    """Returns `before` with checked values; those that are None become defaults again.

    `window`: tokens of the window of the model after the change. With another model the limit of the window is that
    model's default, unless it is among the values. Raises Refused (AGENT_INVALID).
    """
    if values.get("compaction_settings"):
        merged = changed_compaction(before.compaction_settings or {}, values["compaction_settings"])
        values = {**values, "compaction_settings": merged}
    after = replace(before, **_stored(values, before.agent_type, defaults))
    if "context_window_limit" in values:
        return replace(after, context_window_limit=_limit(values["context_window_limit"], window))
    if after.model != before.model:
        return replace(after, context_window_limit=_limit(None, window))
    return after


def with_tools(settings: AgentSettings, tool_ids: Iterable[UUID]) -> AgentSettings:
    """Returns `settings` with these tools. Raises Refused (AGENT_INVALID)."""
    tool_ids = unique(tool_ids)
    check_tools(tool_ids)
    return replace(settings, tool_ids=tool_ids)


def changed_compaction(before: Mapping[str, Any], sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the settings of compaction after a change; another mode brings its own prompt."""
    kept = {name: value for name, value in before.items() if name != "prompt" or "mode" not in sent}
    return {**kept, **sent}


def settings_of(agent: Agent) -> Settings:
    """Returns the settings for work outside of a run; a run keeps those with which it began."""
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
        agent_name=settings.name,
    )


def unique(ids: Iterable[UUID]) -> tuple[UUID, ...]:
    """Returns the ids in order, each once."""
    return tuple(dict.fromkeys(ids))


def _stored(values: SettingValues, agent_type: str, defaults: Defaults) -> dict[str, Any]:
    """Returns the values as they are stored, without the limit of the window, which depends on the model."""
    usual: dict[str, Any] = {
        **_DEFAULTS,
        "agent_type": agent_type,
        "system": INSTRUCTIONS[agent_type],
        "model": defaults.model,
        "embedding": defaults.embedding,
        "model_settings": {},
    }
    stored: dict[str, Any] = {name: usual.get(name) if value is None else value for name, value in values.items()}
    stored.pop("context_window_limit", None)
    if "name" in stored and stored["name"] is None:
        stored["name"] = random_name()
    if "message_buffer_autoclear" in stored:
        stored["message_buffer_autoclear"] |= POLICIES[agent_type].autoclear
    if HIDING_TAG in (values.get("tags") or ()) and "hidden" in stored:
        stored["hidden"] = True
    for name in {"response_format", "compaction_settings"} & stored.keys():
        # An empty object asks for nothing.
        stored[name] = stored[name] or None
    return stored


def _limit(limit: int | None, window: int) -> int:
    if limit is None:
        return min(window, LARGEST_DEFAULT_WINDOW)
    if limit > window:
        raise invalid("context_window_limit", f"is {limit}; the model's window has {window} tokens")
    return limit
