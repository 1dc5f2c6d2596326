"""Passages: what may be stored, and what of it is embedded. Pure functions."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from math import hypot, isfinite
from uuid import UUID, uuid5

from services.memory.core.blocks import json_without_nul, unique_tags, without_nul
from services.memory.model import PassageChanges, PassageDraft, Refused

LONGEST_TEXT = 1_000_000
LONGEST_QUERY = 10_000
MOST_DRAFTS = 1_000
MOST_RESULTS = 1_000
MOST_DIMENSIONS = 16_000
# Embedding models read about 8,000 tokens; this many UTF-8 bytes are fewer in every language.
_EMBEDDED_BYTES = 20_000

Vector = Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageFilter:
    """Which passages count: with any (or all) of `tags`, made in [start, end]. Empty: all."""

    tags: tuple[str, ...] = ()
    match_all_tags: bool = False
    start: datetime | None = None
    end: datetime | None = None


class SearchMode(IntEnum):
    """How to search; the numbers are those of the proto."""

    HYBRID = 1
    VECTOR = 2
    TEXT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageQuery:
    """What to look for and how, and how many passages at most."""

    text: str
    top_k: int = 5
    mode: SearchMode = SearchMode.HYBRID
    filter: PassageFilter = field(default_factory=PassageFilter)


def checked_drafts(drafts: Sequence[PassageDraft]) -> list[PassageDraft]:
    """The drafts as they will be stored. Raises Refused (PASSAGE_INVALID)."""
    if not 1 <= len(drafts) <= MOST_DRAFTS:
        raise Refused("PASSAGE_INVALID", f"give 1 to {MOST_DRAFTS} passages, not {len(drafts)}")
    if len({draft.id for draft in drafts}) < len(drafts):
        raise Refused("PASSAGE_INVALID", "two of the passages have the same id")
    return [_checked(draft) for draft in drafts]


def given_vectors(drafts: Sequence[PassageDraft]) -> list[list[float] | None] | None:
    """The vectors that drafts bring, at length 1 (None for one without any direction); None where they bring none.

    Raises Refused (PASSAGE_INVALID): all of one length or none at all, and finite numbers alone.
    """
    lengths = {len(draft.embedding) for draft in drafts}
    if lengths == {0}:
        return None
    if len(lengths) > 1:
        raise Refused("PASSAGE_INVALID", "all passages of a request bring a vector of one length, or none does")
    if max(lengths) > MOST_DIMENSIONS:
        raise Refused("PASSAGE_INVALID", f"vectors have 1 to {MOST_DIMENSIONS} dimensions, not {max(lengths)}")
    try:
        return [unit_vector(draft.embedding) for draft in drafts]
    except ValueError as error:
        raise Refused("PASSAGE_INVALID", f"a vector cannot be stored: {error}") from None


def _checked(draft: PassageDraft) -> PassageDraft:
    return replace(
        draft,
        text=_checked_text(draft.text),
        tags=unique_tags(draft.tags, "PASSAGE_INVALID"),
        metadata=json_without_nul(draft.metadata),
    )


def _checked_text(text: str) -> str:
    text = without_nul(text)
    if not 1 <= len(text) <= LONGEST_TEXT:
        raise Refused("PASSAGE_INVALID", f"a passage has 1 to {LONGEST_TEXT} characters, this one {len(text)}")
    if not text.strip():
        raise Refused("PASSAGE_INVALID", "a passage is more than blanks")
    return text


def checked_changes(changes: PassageChanges) -> PassageChanges:
    """The changes as they will be stored. Raises Refused (PASSAGE_INVALID)."""
    checked = changes.copy()
    if "text" in changes:
        checked["text"] = _checked_text(changes["text"])
    if "tags" in changes:
        checked["tags"] = unique_tags(changes["tags"], "PASSAGE_INVALID")
    if "metadata" in changes:
        checked["metadata"] = json_without_nul(changes["metadata"])
    return checked


def checked_query(query: PassageQuery) -> PassageQuery:
    """The query as it will be asked. Raises Refused (QUERY_INVALID)."""
    text = without_nul(query.text).strip()
    if not 1 <= len(text) <= LONGEST_QUERY:
        raise Refused("QUERY_INVALID", f"a query has 1 to {LONGEST_QUERY} characters, this one {len(text)}")
    if not 1 <= query.top_k <= MOST_RESULTS:
        raise Refused("QUERY_INVALID", f"top_k is 1 to {MOST_RESULTS}, not {query.top_k}")
    tags = unique_tags(query.filter.tags, "QUERY_INVALID")
    return replace(query, text=text, filter=replace(query.filter, tags=tags))


def to_embed(text: str) -> str:
    """The part of a text that is embedded: its first 20,000 bytes. The whole of it is found by its words."""
    encoded = text.encode()
    return text if len(encoded) <= _EMBEDDED_BYTES else encoded[:_EMBEDDED_BYTES].decode(errors="ignore")


def unit_vector(values: Vector) -> list[float] | None:
    """The vector at length 1, which fits 16-bit floats; None for a zero vector, which has no direction.

    Raises ValueError when a component is not a finite number.
    """
    length = hypot(*values)
    if not isfinite(length):
        raise ValueError("a component is not a finite number")
    return [value / length for value in values] if length else None


def id_of_call(organization_id: UUID, call_key: str) -> UUID:
    """The id of the passage that a tool call stores: derived from its key (UUID version 5)."""
    return uuid5(organization_id, f"passage {call_key}")
