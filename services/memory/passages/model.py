"""Passages: plain values, where they are looked for, and what may be stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import IntEnum
from typing import Any
from uuid import UUID, uuid5

from services.common.core.neighbours import MOST_CONTEXT
from services.common.core.refusals import Refused
from services.common.core.storable import storable, storable_json
from services.common.core.vectors import unit_vector
from services.memory.archives.model import EmbeddingModel
from services.memory.core.rules import JsonObject, apply_rules, apply_rules_to, unique_tags
from services.memory.core.vectors import MOST_DIMENSIONS

LONGEST_TEXT = 1_000_000
LONGEST_QUERY = 10_000
LONGEST_KEY = 500
MOST_DRAFTS = 1_000
MOST_RESULTS = 1_000


@dataclass(frozen=True, slots=True)
class OfAgent:
    """The archives attached to an agent."""

    agent_id: UUID


@dataclass(frozen=True, slots=True)
class InArchive:
    """One archive."""

    archive_id: UUID


@dataclass(frozen=True, slots=True)
class InFolder:
    """The files of one folder."""

    folder_id: UUID


@dataclass(frozen=True, slots=True)
class FoldersOfAgent:
    """The files of all folders attached to an agent."""

    agent_id: UUID


@dataclass(frozen=True, slots=True)
class OfTenant:
    """All archives of the tenant; no folders."""


Place = OfAgent | InArchive | InFolder | FoldersOfAgent | OfTenant


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSettings:
    """The fields of a passage that a client may change. created_at: None for now.

    valid_from, valid_to: when what it says is true; None for since it was made, and for still.
    """

    text: str
    tags: tuple[str, ...] = ()
    metadata: JsonObject = field(default_factory=dict)
    created_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageDraft(PassageSettings):
    """A passage to create, with its id minted. embedding: its vector where the caller has it, else empty.

    key: what it is about; the latest of one key is true. supersedes: passages whose place it takes.
    """

    id: UUID
    embedding: tuple[float, ...] = ()
    key: str | None = None
    supersedes: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePiece:
    """The place in a file that a passage is from; see loci.memory.v1.FilePiece. `file_name` is `folder/name`."""

    folder_id: UUID
    file_id: UUID
    file_name: str
    place: int
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage as stored; `embedding` is the handle of the model whose vector it has, None without one.

    file: set for a piece of a file, whose archive has the id of the folder.
    """

    id: UUID
    archive_id: UUID
    text: str
    tags: tuple[str, ...]
    metadata: JsonObject
    embedding: str | None
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime
    file: FilePiece | None = None
    key: str | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by_id: UUID | None = None


# Archive and passage.
PassageKey = tuple[UUID, UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTexts:
    """Words and vectors of some texts, made for an archive with this embedding handle, if any.

    model: that of the vectors, None without a handle. A vector may be None also with a model: a text without any
    direction. search_words: see `services.common.core.words.index_words`.
    """

    embedding: str | None
    model: EmbeddingModel | None
    search_words: Sequence[Sequence[str]]
    vectors: Sequence[Sequence[float] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPassages:
    """Passages for one archive. `default_of`: the agent whose default archive must be made with them, else None."""

    archive_id: UUID
    default_of: UUID | None
    agent_name: str
    drafts: Sequence[PassageDraft]
    embedded: EmbeddedTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageFilter:
    """A filter of passages: with any (or all) of `tags`, made in [start, end]. Empty: all that is true now.

    as_of: what was true then. history: also what is true no more. ended: only that.
    """

    tags: tuple[str, ...] = ()
    match_all_tags: bool = False
    start: datetime | None = None
    end: datetime | None = None
    as_of: datetime | None = None
    history: bool = False
    ended: bool = False


class SearchMode(IntEnum):
    """The kind of search; the numbers are those of the proto."""

    HYBRID = 1
    VECTOR = 2
    TEXT = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageQuery:
    """A query, its kind, and how many passages it finds at most; each with `context` neighbours on either side."""

    text: str
    top_k: int = 5
    mode: SearchMode = SearchMode.HYBRID
    context: int = 0
    filter: PassageFilter = field(default_factory=PassageFilter)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageList:
    """Filters of a list of passages; see loci.memory.v1.ListPassagesRequest."""

    place: Place
    search: str | None = None
    filter: PassageFilter = field(default_factory=PassageFilter)


def validate_drafts(drafts: Sequence[PassageDraft]) -> list[PassageDraft]:
    """Returns the drafts as they will be stored. Raises Refused (PASSAGE_INVALID)."""
    if not 1 <= len(drafts) <= MOST_DRAFTS:
        raise Refused("PASSAGE_INVALID", f"give 1 to {MOST_DRAFTS} passages, not {len(drafts)}")
    if len({draft.id for draft in drafts}) < len(drafts):
        raise Refused("PASSAGE_INVALID", "two of the passages have the same id")
    for draft in drafts:
        _check_validity(draft.valid_from or draft.created_at, draft.valid_to)
        if draft.id in draft.supersedes:
            raise Refused("PASSAGE_INVALID", "a passage cannot supersede itself")
    return [apply_rules_to(_DRAFT_RULES, draft) for draft in drafts]


def _check_validity(start: datetime | None, end: datetime | None) -> None:
    if start is not None and end is not None and end < start:
        raise Refused("PASSAGE_INVALID", "valid_to is before valid_from; exchange them")


def draft_vectors(drafts: Sequence[PassageDraft]) -> list[list[float] | None] | None:
    """Returns the vectors that drafts bring, at length 1 (None for one without direction); None where they bring none.

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


def _validate_text(text: str) -> str:
    text = storable(text)
    if not 1 <= len(text) <= LONGEST_TEXT:
        raise Refused("PASSAGE_INVALID", f"a passage has 1 to {LONGEST_TEXT} characters, this one {len(text)}")
    if not text.strip():
        raise Refused("PASSAGE_INVALID", "a passage is more than blanks")
    return text


_RULES: Mapping[str, Callable[[Any], Any]] = {
    "text": _validate_text,
    "tags": lambda tags: unique_tags(tags, "PASSAGE_INVALID"),
    "metadata": storable_json,
}


def _validate_key(key: str | None) -> str | None:
    if key is None:
        return None
    key = storable(key).strip()
    if not 1 <= len(key) <= LONGEST_KEY:
        raise Refused("PASSAGE_INVALID", f"a key has 1 to {LONGEST_KEY} characters, this one {len(key)}")
    return key


_DRAFT_RULES: Mapping[str, Callable[[Any], Any]] = {**_RULES, "key": _validate_key}


def validate_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes as they will be stored. Raises Refused (PASSAGE_INVALID)."""
    if changes.get("created_at", ...) is None:
        raise Refused("PASSAGE_INVALID", "created_at is in the mask but not given")
    _check_validity(changes.get("valid_from"), changes.get("valid_to"))
    return apply_rules(_RULES, changes)


def validate_query(query: PassageQuery) -> PassageQuery:
    """Returns the query as it will be asked. Raises Refused (QUERY_INVALID)."""
    text = storable(query.text).strip()
    if not 1 <= len(text) <= LONGEST_QUERY:
        raise Refused("QUERY_INVALID", f"a query has 1 to {LONGEST_QUERY} characters, this one {len(text)}")
    if not 1 <= query.top_k <= MOST_RESULTS:
        raise Refused("QUERY_INVALID", f"top_k is 1 to {MOST_RESULTS}, not {query.top_k}")
    if not 0 <= query.context <= MOST_CONTEXT:
        raise Refused("QUERY_INVALID", f"context is 0 to {MOST_CONTEXT} passages on either side, not {query.context}")
    if query.filter.as_of is not None and query.filter.history:
        raise Refused("QUERY_INVALID", "give as_of, or history for what was true at any time, not both")
    tags = unique_tags(query.filter.tags, "QUERY_INVALID")
    return replace(query, text=text, filter=replace(query.filter, tags=tags))


def id_of_call(organization_id: UUID, call_key: str) -> UUID:
    """Returns the id of the passage that a tool call stores: derived from its key (UUID version 5)."""
    return uuid5(organization_id, f"passage {call_key}")
