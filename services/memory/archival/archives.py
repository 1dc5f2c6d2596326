"""Archives: what may be stored. Pure functions."""

from dataclasses import replace

from services.memory.archival.passages import MOST_DIMENSIONS
from services.memory.core.blocks import json_without_nul, without_nul
from services.memory.model import ArchiveChanges, ArchiveDraft, Refused

LONGEST_NAME = 1_000
LONGEST_DESCRIPTION = 10_000


def checked_draft(draft: ArchiveDraft) -> ArchiveDraft:
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


def checked_changes(changes: ArchiveChanges) -> ArchiveChanges:
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
