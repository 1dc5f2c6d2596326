"""Conversations and their settings. Pure.

values = check(values)                  what a client sets, by field
settings = begin(values, ...)           a new conversation's settings
values = change(before, values, ...)    what an update writes

A conversation may have a model, model settings and a limit of the window of its own; without, it has its agent's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core import model_settings
from services.agent.resources.agents.model.settings import LARGEST_DEFAULT_WINDOW
from services.common.core.refusals import Refused
from services.common.core.storable import storable_name

MOST_CHARACTERS = 100_000
MOST_ISOLATED = 100
_HANDLE = re.compile(r"[^/\s]+/\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationSettings:
    """All that can be set on a conversation; see loci.agent.v1.Conversation. None: the agent's, or nothing."""

    summary: str | None = None
    description: str | None = None
    model: str | None = None
    model_settings: Mapping[str, Any] | None = None
    context_window_limit: int | None = None
    hidden: bool = False
    archived_at: datetime | None = None
    last_message_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation as stored. `isolated_labels`: of the blocks of which it has copies."""

    id: UUID
    agent_id: UUID
    settings: ConversationSettings
    isolated_labels: tuple[str, ...]
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


# By the names of ConversationSettings; None: the agent's, or nothing.
SettingValues = Mapping[str, Any]


def check(values: SettingValues) -> SettingValues:
    """Returns the values. Raises Refused (CONVERSATION_INVALID, MODEL_HANDLE_INVALID), naming the field and what is
    expected.
    """
    model = values.get("model")
    if model is not None and not _HANDLE.fullmatch(model):
        raise Refused("MODEL_HANDLE_INVALID", f"model must be a handle 'provider/model', not {model[:80]!r}")
    if problem := model_settings.problem(values.get("model_settings") or {}):
        raise invalid("model_settings", f"cannot be used: {problem}")
    for name in ("summary", "description"):
        if len(values.get(name) or "") > MOST_CHARACTERS:
            raise invalid(name, f"has {len(values[name])} characters; at most {MOST_CHARACTERS} are kept")
    return values


def check_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels of blocks to copy, each once. Raises Refused (CONVERSATION_INVALID)."""
    unique = tuple(dict.fromkeys(storable_name(label) for label in labels))
    if len(unique) > MOST_ISOLATED:
        raise invalid("isolated_block_labels", f"has {len(unique)} labels; at most {MOST_ISOLATED} are copied")
    return unique


def window_model(values: SettingValues, before: str | None, of_agent: str) -> str | None:
    """Returns the model whose window must be known for a change; None where it does not matter.

    `before`: the conversation's own model, if it has one; `of_agent`: the one it has else.
    """
    if not values.keys() & {"model", "context_window_limit"}:
        return None
    after: str | None = values.get("model", before)
    return after or (of_agent if values.get("context_window_limit") is not None else None)


def begin(values: SettingValues, *, window: int, now: datetime) -> ConversationSettings:
    """Returns a new conversation's settings from checked values; `window`: tokens of its model's window.

    Raises Refused (CONVERSATION_INVALID).
    """
    nothing = ConversationSettings()
    return replace(nothing, **change(nothing, values, window=window, now=now))


def change(before: ConversationSettings, values: SettingValues, *, window: int, now: datetime) -> SettingValues:
    """Returns what is to be stored for checked values.

    `window`: tokens of the window of the model after the change. A model of its own brings a limit: the agent's may be
    beyond its window. Raises Refused (CONVERSATION_INVALID).
    """
    stored = dict(values)
    if "hidden" in stored:
        stored["hidden"] = bool(stored["hidden"])
    if stored.get("archived_at") is not None:
        stored["archived_at"] = before.archived_at or now
    if values.keys() & {"model", "context_window_limit"}:
        stored["context_window_limit"] = _limit(before, values, window)
    return stored


def invalid(name: str, problem: str) -> Refused:
    """Returns a refusal that names a field."""
    return Refused("CONVERSATION_INVALID", f"{name} {problem}")


def _limit(before: ConversationSettings, values: SettingValues, window: int) -> int | None:
    model = values.get("model", before.model)
    if "context_window_limit" not in values and model == before.model:
        return before.context_window_limit
    limit: int | None = values.get("context_window_limit")
    if limit is None:
        return None if model is None else min(window, LARGEST_DEFAULT_WINDOW)
    if limit > window:
        raise invalid("context_window_limit", f"is {limit}; the model's window has {window} tokens")
    return limit
