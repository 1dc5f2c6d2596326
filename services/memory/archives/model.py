"""Archives: plain values, and what may be stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.core.storable import storable_json
from services.memory.core.rules import JsonObject, apply_rules, apply_rules_to
from services.memory.core.vectors import MOST_DIMENSIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """A model and the length of its vectors. `id` is ours, small, and stands as a literal in SQL."""

    id: int
    handle: str
    dimensions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """The fields of an archive that a client may change."""

    name: str
    description: str | None = None
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveDraft(ArchiveSettings):
    """An archive to create, with its id minted. embedding: a handle, or empty. dimensions: of its vectors, or 0."""

    id: UUID
    embedding: str = ""
    dimensions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive(ArchiveSettings):
    """An archive as stored, with the counts that ranking needs.

    embedding: the handle it was made for; None: text alone. model: that of its vectors, None before the first.
    """

    id: UUID
    embedding: str | None
    model: EmbeddingModel | None
    passage_count: int
    word_count: int
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveList:
    """Filters of a list of archives."""

    name: str | None = None
    agent_id: UUID | None = None


def validate_draft(draft: ArchiveDraft) -> ArchiveDraft:
    """Returns the draft as it will be stored. Raises Refused (ARCHIVE_INVALID)."""
    if draft.dimensions and not draft.embedding:
        raise Refused("ARCHIVE_INVALID", "an archive without an embedding model has no vectors, and so no dimensions")
    if not 0 <= draft.dimensions <= MOST_DIMENSIONS:
        raise Refused("ARCHIVE_INVALID", f"vectors have 1 to {MOST_DIMENSIONS} dimensions, not {draft.dimensions}")
    return apply_rules_to(_RULES, draft)


def validate_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes as they will be stored. Raises Refused (ARCHIVE_INVALID)."""
    return apply_rules(_RULES, changes)


def _name(name: str) -> str:
    if not name.strip():
        raise Refused("ARCHIVE_INVALID", "the name of an archive must not be blank")
    return name


_RULES: Mapping[str, Callable[[Any], Any]] = {"name": _name, "metadata": storable_json}
