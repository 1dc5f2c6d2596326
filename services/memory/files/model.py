"""Folders and files, as plain values. Nothing here knows SQL or protobuf."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import TypedDict
from uuid import UUID

from services.memory.model import JsonObject


class FileStatus(IntEnum):
    """How far a file is; the numbers are those of FileStatus in the proto, and stored."""

    PENDING = 1
    PARSING = 2
    EMBEDDING = 3
    COMPLETED = 4
    ERROR = 5


class OnDuplicate(IntEnum):
    """What becomes of an upload whose name is taken; the numbers are those of OnDuplicate in the proto."""

    SUFFIX = 1
    SKIP = 2
    ERROR = 3
    REPLACE = 4


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


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file as stored; see loci.memory.v1.File. `name` is its own, `folder_name` that of its folder."""

    id: UUID
    folder_id: UUID
    folder_name: str
    name: str
    original_name: str
    media_type: str
    size: int
    status: FileStatus
    error: str | None
    chunk_count: int
    embedded_count: int
    line_count: int
    char_count: int
    created_by_id: UUID
    created_at: datetime
    updated_at: datetime

    @property
    def path(self) -> str:
        """`folder/name`, as agents call it."""
        return f"{self.folder_name}/{self.name}"

    @property
    def has_text(self) -> bool:
        """Whether its text can be opened and searched by patterns."""
        return self.status in (FileStatus.EMBEDDING, FileStatus.COMPLETED) or self.line_count > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """Some whole lines of a file's text, joined by newlines, without one at the end; see files/pages.py.

    Pages are numbered from 0, lines from 1. continued: a line too long to be kept as one ends here in its middle, and
    the next page goes on with it, as a line of its own. cuts: where its pieces begin and end; first_place: the place in
    the file of the first of them.
    """

    page: int
    first_line: int
    last_line: int
    text: str
    continued: bool = False
    first_place: int = 0
    cuts: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a file's text that becomes a passage; `place` counts from 0, lines from 1."""

    place: int
    first_line: int
    last_line: int
    text: str
