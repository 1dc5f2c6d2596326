"""What a conversation is, and what may be set on it. Pure.

draft = check(draft)                    what a client wants, without what cannot be stored
settings = begin(draft, ...)            a new conversation's settings
values = change(before, draft, ...)     what an update writes

A conversation may have a model, model settings and a limit of the window of its own; without, it has its agent's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from services.agent.core import model_settings
from services.agent.resources.agents.model.settings import LARGEST_DEFAULT_WINDOW
from services.common.refusals import Refused
from services.common.storable import storable

MOST_CHARACTERS = 100_000
MOST_ISOLATED = 100
_HANDLE = re.compile(r"[^/\s]+/\S+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDraft:
    """What a client sets; None: not given. `archived`: whether it is put away. Fields as in ConversationSettings."""

    summary: str | None = None
    description: str | None = None
    model: str | None = None
    model_settings: Mapping[str, Any] | None = None
    context_window_limit: int | None = None
    hidden: bool | None = None
    archived: bool | None = None
    last_message_at: datetime | None = None


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


SETTABLE = tuple(each.name for each in fields(ConversationDraft))


def check(draft: ConversationDraft) -> ConversationDraft:
    """The draft as it can be stored: NUL characters left out. Raises Refused (CONVERSATION_INVALID)."""
    if draft.model is not None and not _HANDLE.fullmatch(draft.model):
        raise _invalid("model", f"must be a handle 'provider/model', not {draft.model[:80]!r}")
    if draft.context_window_limit is not None and draft.context_window_limit < 1:
        raise _invalid("context_window_limit", "must be at least 1 token")
    if wrong := model_settings.problem(draft.model_settings or {}):
        raise _invalid("model_settings", f"cannot be used: {wrong}")
    summary, description = _text("summary", draft.summary), _text("description", draft.description)
    return replace(draft, summary=summary, description=description)


def check_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels of blocks to copy, each once. Raises Refused (CONVERSATION_INVALID)."""
    unique = tuple(dict.fromkeys(storable(label) for label in labels))
    if len(unique) > MOST_ISOLATED:
        raise _invalid("isolated_block_labels", f"has {len(unique)} labels; at most {MOST_ISOLATED} are copied")
    return unique


def check_mask(names: Iterable[str]) -> frozenset[str]:
    """Names of settings that an update changes. Raises Refused (UPDATE_MASK_INVALID)."""
    mask = frozenset(names)
    if unknown := sorted(mask - set(SETTABLE)):
        sentence = f"update_mask names what cannot be changed on a conversation: {', '.join(unknown)[:200]}"
        raise Refused("UPDATE_MASK_INVALID", sentence)
    return mask


def window_model(draft: ConversationDraft, mask: frozenset[str], before: str | None, of_agent: str) -> str | None:
    """The model whose window must be known for a change; None where it does not matter.

    `before`: the conversation's own model, if it has one; `of_agent`: the one it has else.
    """
    if not mask & {"model", "context_window_limit"}:
        return None
    after = draft.model if "model" in mask else before
    limited = "context_window_limit" in mask and draft.context_window_limit is not None
    return after or (of_agent if limited else None)


def begin(draft: ConversationDraft, *, window: int, now: datetime) -> ConversationSettings:
    """A new conversation's settings from a checked draft; `window`: tokens of its model's window.

    Raises Refused (CONVERSATION_INVALID).
    """
    values = change(ConversationSettings(), draft, frozenset(SETTABLE), window=window, now=now)
    return ConversationSettings(**values)


def change(
    before: ConversationSettings, draft: ConversationDraft, mask: frozenset[str], *, window: int, now: datetime
) -> dict[str, Any]:
    """New values by the names of ConversationSettings, for the fields of `mask` as in a checked draft.

    `window`: tokens of the window of the model after the change. A model of its own brings a limit: the agent's may be
    beyond its window. Raises Refused (CONVERSATION_INVALID).
    """
    values: dict[str, Any] = {name: getattr(draft, name) for name in mask - {"archived", "hidden"}}
    if "hidden" in mask:
        values["hidden"] = bool(draft.hidden)
    if "archived" in mask:
        values["archived_at"] = (before.archived_at or now) if draft.archived else None
    if mask & {"model", "context_window_limit"}:
        values["context_window_limit"] = _limit(before, draft, mask, window)
    return values


def _limit(before: ConversationSettings, draft: ConversationDraft, mask: frozenset[str], window: int) -> int | None:
    model = draft.model if "model" in mask else before.model
    if "context_window_limit" not in mask and model == before.model:
        return before.context_window_limit
    wanted = draft.context_window_limit if "context_window_limit" in mask else None
    if wanted is None:
        return None if model is None else min(window, LARGEST_DEFAULT_WINDOW)
    if wanted > window:
        raise _invalid("context_window_limit", f"is {wanted}; the model's window has {window} tokens")
    return wanted


def _text(name: str, value: str | None) -> str | None:
    if value is not None and len(value) > MOST_CHARACTERS:
        raise _invalid(name, f"has {len(value)} characters; at most {MOST_CHARACTERS} are kept")
    return None if value is None else storable(value)


def _invalid(name: str, problem: str) -> Refused:
    return Refused("CONVERSATION_INVALID", f"{name} {problem}")
