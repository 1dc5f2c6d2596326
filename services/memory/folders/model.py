"""Folders: plain values, and what may be stored."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypedDict
from uuid import UUID

import orjson

from services.common.refusals import Refused
from services.memory.core.file_text.names import CONTROLS, LONGEST_NAME, normal_form
from services.memory.core.storable import JsonObject, json_without_nul, without_nul

LONGEST_TEXT = 100_000


class FolderChanges(TypedDict, total=False):
    """New values of those fields of a folder that a client may change."""

    name: str
    description: str | None
    instructions: str | None
    metadata: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDraft:
    """A folder to create, with its id minted. `embedding`: handle, or empty for text search only."""

    id: UUID
    name: str
    description: str | None = None
    instructions: str | None = None
    metadata: JsonObject = field(default_factory=dict)
    embedding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder as stored; see loci.memory.v1.Folder. Its passages are those of the archive with the same id."""

    id: UUID
    name: str
    description: str | None
    instructions: str | None
    metadata: JsonObject
    embedding: str
    file_count: int
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


def validate_folder(draft: FolderDraft) -> FolderDraft:
    """The draft as it will be stored. Raises Refused (FOLDER_INVALID)."""
    return replace(
        draft,
        name=_folder_name(draft.name),
        description=_text("description", draft.description),
        instructions=_text("instructions", draft.instructions),
        metadata=_metadata(draft.metadata),
        embedding=without_nul(draft.embedding),
    )


def validate_changes(changes: FolderChanges) -> FolderChanges:
    """The changes as they will be stored. Raises Refused (FOLDER_INVALID)."""
    checked = changes.copy()
    if "name" in checked:
        checked["name"] = _folder_name(checked["name"])
    if "description" in checked:
        checked["description"] = _text("description", checked["description"])
    if "instructions" in checked:
        checked["instructions"] = _text("instructions", checked["instructions"])
    if "metadata" in checked:
        checked["metadata"] = _metadata(checked["metadata"])
    return checked


def _folder_name(name: str) -> str:
    name = normal_form(CONTROLS.sub("", name)).strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        raise Refused("FOLDER_INVALID", f"a folder's name has 1 to {LONGEST_NAME} characters, this one {len(name)}")
    if "/" in name:
        raise Refused("FOLDER_INVALID", "a folder's name has no '/': files are called folder/name")
    return name


def _text(field: str, text: str | None) -> str | None:
    text = None if text is None else without_nul(text)
    if text is not None and len(text) > LONGEST_TEXT:
        raise Refused("FOLDER_INVALID", f"{field} has at most {LONGEST_TEXT} characters, this one {len(text)}")
    return text


def _metadata(value: JsonObject) -> JsonObject:
    """Every agent with the folder is answered with it."""
    value = json_without_nul(value)
    if (size := len(orjson.dumps(value))) > LONGEST_TEXT:
        raise Refused("FOLDER_INVALID", f"metadata has at most {LONGEST_TEXT} bytes as JSON, this one {size}")
    return value
