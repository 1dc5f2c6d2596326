"""What an agent is, and what may be set on it. Pure.

draft = check(draft)                      what a client wants, without what cannot be stored
settings = begin(draft, ...)              a new agent's settings, defaults filled in
settings = change(settings, draft, ...)   those fields of the draft that an update names
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson

from services.agent import model_settings
from services.agent.instructions import INSTRUCTIONS
from services.agent.names import random_name
from services.agent.refusals import Refused

LETTA_V1_AGENT = "letta_v1_agent"
# Tools that a new agent of a type is given; LETTA V1 API, create agent.
BASE_TOOLS = {LETTA_V1_AGENT: ("memory_insert", "memory_replace", "conversation_search")}
# Beyond this a model's window is left unused unless the client asks for it: long prompts are slow and dear.
LARGEST_DEFAULT_WINDOW = 128_000
MOST_TOOLS = 1_000
HIDING_TAG = "role:subagent"
_NAME = re.compile(r"[\w '-]{1,256}")
# An escaped NUL, but not an escaped backslash before "u0000".
_NUL = re.compile(rb"((?<!\\)(?:\\\\)*)\\u0000")
_HANDLE = re.compile(r"[^/\s]+/\S+")


@dataclass(frozen=True, slots=True)
class Defaults:
    """Handles that an agent gets when its client names none."""

    model: str
    embedding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDraft:
    """What a client sets; None: not given. Fields as in AgentSettings."""

    name: str | None = None
    description: str | None = None
    agent_type: str | None = None
    system: str | None = None
    model: str | None = None
    embedding: str | None = None
    model_settings: Mapping[str, Any] | None = None
    response_format: Mapping[str, Any] | None = None
    context_window_limit: int | None = None
    tool_ids: tuple[UUID, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    timezone: str | None = None
    hidden: bool | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """All that can be set on an agent; see loci.agent.v1.Agent. The limit of the window is in tokens."""

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
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    timezone: str = "UTC"
    hidden: bool = False
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run that has ended."""

    stop_reason: str | None
    created_at: datetime
    completed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent as stored. `window`: the messages in its default conversation's window, oldest first."""

    id: UUID
    version: int
    settings: AgentSettings
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
    window: tuple[UUID, ...] = ()
    last_run: LastRun | None = None


SETTABLE = tuple(each.name for each in fields(AgentSettings))


def check(draft: AgentDraft) -> AgentDraft:
    """The draft as it can be stored: NUL characters left out, tags sorted, nothing twice.

    Raises Refused (AGENT_INVALID), naming the field and what is expected.
    """
    draft = replace(draft, **{each.name: _without_nul(getattr(draft, each.name)) for each in fields(draft)})
    if draft.name is not None and not _NAME.fullmatch(draft.name):
        raise _invalid("name", "must have 1 to 256 characters: letters, digits, spaces, '_', '-' and \"'\"")
    if draft.agent_type not in (None, *BASE_TOOLS):
        raise _invalid("agent_type", f"must be one of: {', '.join(BASE_TOOLS)}")
    for name, handle in (("model", draft.model), ("embedding", draft.embedding)):
        if handle is not None and not _HANDLE.fullmatch(handle):
            raise _invalid(name, f"must be a handle 'provider/model', not {handle[:80]!r}")
    if draft.timezone is not None and not _is_timezone(draft.timezone):
        raise _invalid("timezone", f"must be an IANA name such as 'Europe/Paris', not {draft.timezone[:80]!r}")
    if draft.context_window_limit is not None and draft.context_window_limit < 1:
        raise _invalid("context_window_limit", "must be at least 1 token")
    if wrong := model_settings.problem(draft.model_settings or {}):
        raise _invalid("model_settings", f"cannot be used: {wrong}")
    tool_ids = unique(draft.tool_ids)
    _check_tools(tool_ids)
    return replace(draft, tool_ids=tool_ids, tags=tuple(sorted({tag for tag in draft.tags if tag})))


def begin(draft: AgentDraft, tool_ids: Iterable[UUID], *, window: int, defaults: Defaults) -> AgentSettings:
    """A new agent's settings from a checked draft; `window`: tokens of its model's window.

    Raises Refused (AGENT_INVALID).
    """
    limit = _limit(draft.context_window_limit, window)
    return with_tools(AgentSettings(**_values(draft, defaults), context_window_limit=limit), tool_ids)


def change(
    before: AgentSettings, draft: AgentDraft, mask: frozenset[str], *, window: int, defaults: Defaults
) -> AgentSettings:
    """`before` with the fields of `mask` as in a checked draft; those that are not given become defaults again.

    `window`: tokens of the window of the model after the change. With another model the limit of the window is that
    model's default, unless the mask names it. Raises Refused (AGENT_INVALID).
    """
    values = _values(draft, defaults)
    after = replace(before, **{name: values[name] for name in mask if name in values})
    if "context_window_limit" in mask:
        return replace(after, context_window_limit=_limit(draft.context_window_limit, window))
    if after.model != before.model:
        return replace(after, context_window_limit=_limit(None, window))
    return after


def with_tools(settings: AgentSettings, tool_ids: Iterable[UUID]) -> AgentSettings:
    """`settings` with these tools. Raises Refused (AGENT_INVALID)."""
    tool_ids = unique(tool_ids)
    _check_tools(tool_ids)
    return replace(settings, tool_ids=tool_ids)


def check_mask(names: Iterable[str]) -> frozenset[str]:
    """Names of settings that an update changes. Raises Refused (UPDATE_MASK_INVALID)."""
    mask = frozenset(names)
    if unknown := sorted(mask - set(SETTABLE) | mask & {"agent_type"}):
        sentence = f"update_mask names what cannot be changed on an agent: {', '.join(unknown)[:200]}"
        raise Refused("UPDATE_MASK_INVALID", sentence)
    return mask


def json_object(name: str, text: str) -> Mapping[str, Any]:
    """The JSON object in a client's text; an empty text is an empty one. Raises Refused (AGENT_INVALID)."""
    try:
        value = orjson.loads(text or "{}")
        # orjson writes less deeply nested data than it reads.
        stored = orjson.dumps(value)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError) as error:
        raise _invalid(name, f"must be a JSON object; {error}") from None
    if not isinstance(value, dict):
        raise _invalid(name, f"must be a JSON object, not a {type(value).__name__}")
    return orjson.loads(_NUL.sub(rb"\1", stored)) if b"\\u0000" in stored else value


def unique(ids: Iterable[UUID]) -> tuple[UUID, ...]:
    """The ids in order, each once."""
    return tuple(dict.fromkeys(ids))


def _values(draft: AgentDraft, defaults: Defaults) -> dict[str, Any]:
    """Every setting but the limit of the window, which depends on the model."""
    agent_type = draft.agent_type or LETTA_V1_AGENT
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
        "tags": draft.tags,
        "metadata": draft.metadata or {},
        "timezone": draft.timezone or "UTC",
        "hidden": bool(draft.hidden) or HIDING_TAG in draft.tags,
        "project_id": draft.project_id,
    }


def _limit(wanted: int | None, window: int) -> int:
    if wanted is None:
        return min(window, LARGEST_DEFAULT_WINDOW)
    if wanted > window:
        raise _invalid("context_window_limit", f"is {wanted}; the model's window has {window} tokens")
    return wanted


def _check_tools(tool_ids: tuple[UUID, ...]) -> None:
    if len(tool_ids) > MOST_TOOLS:
        raise _invalid("tool_ids", f"has {len(tool_ids)} tools; an agent has at most {MOST_TOOLS}")


def _is_timezone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # no such zone; a folder of zones; a path
        return False
    return True


def _without_nul(value: Any) -> Any:
    """Texts without what Postgres cannot store; for JSON see `json_object`."""
    match value:
        case str():
            return value.replace("\0", "")
        case tuple():
            return tuple(map(_without_nul, value))
        case _:
            return value


def _invalid(name: str, problem: str) -> Refused:
    return Refused("AGENT_INVALID", f"{name} {problem}")
