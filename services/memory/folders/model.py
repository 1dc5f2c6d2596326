"""Folders: plain values, and what may be stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from services.common.core.refusals import Refused
from services.common.core.storable import storable_json
from services.memory.core.file_text.names import CONTROLS, LONGEST_NAME, normal_form
from services.memory.core.rules import JsonObject, apply_rules, apply_rules_to

_MOST_METADATA_BYTES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSettings:
    """The fields of a folder that a client may change."""

    name: str
    description: str | None = None
    instructions: str | None = None
    metadata: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDraft(FolderSettings):
    """A folder to create, with its id minted. `embedding`: handle, or empty for text search only."""

    id: UUID
    embedding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder(FolderSettings):
    """A folder as stored; see loci.memory.v1.Folder. Its passages are those of the archive with the same id."""

    id: UUID
    embedding: str
    file_count: int
    created_by_id: UUID
    last_updated_by_id: UUID
    created_at: datetime
    updated_at: datetime


def validate_folder(draft: FolderDraft) -> FolderDraft:
    """Returns the draft as it will be stored. Raises Refused (FOLDER_INVALID)."""
    return apply_rules_to(_RULES, draft)


def validate_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes as they will be stored. Raises Refused (FOLDER_INVALID)."""
    return apply_rules(_RULES, changes)


def _folder_name(name: str) -> str:
    name = normal_form(CONTROLS.sub("", name)).strip()
    if not 1 <= len(name) <= LONGEST_NAME:
        raise Refused("FOLDER_INVALID", f"a folder's name has 1 to {LONGEST_NAME} characters, this one {len(name)}")
    if "/" in name:
        raise Refused("FOLDER_INVALID", "a folder's name has no '/': files are called folder/name")
    return name


def _metadata(value: JsonObject) -> JsonObject:
    """Returns metadata within its limit: every agent with the folder is answered with it."""
    value = storable_json(value)
    if (size := len(orjson.dumps(value))) > _MOST_METADATA_BYTES:
        raise Refused("FOLDER_INVALID", f"metadata has at most {_MOST_METADATA_BYTES} bytes as JSON, this one {size}")
    return value


_RULES: Mapping[str, Callable[[Any], Any]] = {
    "name": _folder_name,
    "metadata": _metadata,
}
