"""Archives: plain values, and what may be stored."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from services.common.refusals import Refused
from services.memory.core.storable import JsonObject, json_without_nul, without_nul
from services.memory.core.vectors import MOST_DIMENSIONS

LONGEST_NAME = 1_000
LONGEST_DESCRIPTION = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """A model and the length of its vectors. `id` is ours, small, and stands as a literal in SQL."""

    id: int
    handle: str
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive as stored, with the counts that ranking needs.

    embedding: the handle it was made for; None: text alone. model: that of its vectors, None before the first.
    """

    id: UUID
    name: str
    description: str | None
    embedding: str | None
    model: EmbeddingModel | None
    metadata: JsonObject
    passage_count: int
    word_count: int
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveDraft:
    """An archive to create, with its id minted. embedding: a handle, or empty. dimensions: of its vectors, or 0."""

    id: UUID
    name: str
    description: str | None = None
    embedding: str = ""
    metadata: JsonObject = field(default_factory=dict)
    dimensions: int = 0


class ArchiveChanges(TypedDict, total=False):
    """New values of those fields of an archive that a client may change."""

    name: str
    description: str | None
    metadata: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveList:
    """Filters of a list of archives."""

    name: str | None = None
    agent_id: UUID | None = None


def validate_draft(draft: ArchiveDraft) -> ArchiveDraft:
    """The draft as it will be stored. Raises Refused (ARCHIVE_INVALID)."""
    if draft.dimensions and not draft.embedding:
        raise Refused("ARCHIVE_INVALID", "an archive without an embedding model has no vectors, and so no dimensions")
    if not 0 <= draft.dimensions <= MOST_DIMENSIONS:
        raise Refused("ARCHIVE_INVALID", f"vectors have 1 to {MOST_DIMENSIONS} dimensions, not {draft.dimensions}")
    return replace(
        draft,
        name=_name(draft.name),
        description=_description(draft.description),
        metadata=json_without_nul(draft.metadata),
    )


def validate_changes(changes: ArchiveChanges) -> ArchiveChanges:
    """The changes as they will be stored. Raises Refused (ARCHIVE_INVALID)."""
    checked = changes.copy()
    if "name" in changes:
        checked["name"] = _name(changes["name"])
    if "description" in changes:
        checked["description"] = _description(changes["description"])
    if "metadata" in changes:
        checked["metadata"] = json_without_nul(changes["metadata"])
    return checked


def _name(name: str) -> str:
    name = without_nul(name)
    if not name.strip() or len(name) > LONGEST_NAME:
        raise Refused("ARCHIVE_INVALID", f"the name of an archive has 1 to {LONGEST_NAME} characters")
    return name


def _description(text: str | None) -> str | None:
    if text is None:
        return None
    text = without_nul(text)
    if len(text) > LONGEST_DESCRIPTION:
        raise Refused(
            "ARCHIVE_INVALID", f"a description has at most {LONGEST_DESCRIPTION} characters, this one {len(text)}"
        )
    return text
