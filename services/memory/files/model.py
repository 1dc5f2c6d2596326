"""Files and their text, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from uuid import UUID

from services.memory.archives.model import EmbeddingModel

# Kinds of jobs. Subject of FILE_JOB: `subject_of`; of the others a bare UUID.
FILE_JOB = "file"
FOLDER_JOB = "folder"
UPLOAD_JOB = "upload"


class FileStatus(IntEnum):
    """The state of a file; the numbers are those of FileStatus in the proto, and stored."""

    PENDING = 1
    PARSING = 2
    EMBEDDING = 3
    COMPLETED = 4
    ERROR = 5


class OnDuplicate(IntEnum):
    """The policy for an upload whose name is in use; the numbers are those of OnDuplicate in the proto."""

    SUFFIX = 1
    SKIP = 2
    ERROR = 3
    REPLACE = 4


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
        """Returns `folder/name`, as agents call it."""
        return f"{self.folder_name}/{self.name}"

    @property
    def has_text(self) -> bool:
        """Returns whether its text can be opened and searched by patterns."""
        return self.status in (FileStatus.EMBEDDING, FileStatus.COMPLETED) or self.line_count > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPage:
    """Some whole lines of a file's text, joined by newlines, without one at the end; see core/file_text/pages.py.

    Pages are numbered from 0, lines from 1; lines without text have no number. A page of these alone ends before it
    begins. continued: a line too long to be kept as one ends here in its middle, and
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


@dataclass(frozen=True, slots=True)
class ParseSummary:
    """The counts that follow the pages of a parsed file. ending: the blank end of its text, which is in no page.
    `charset`: the encoding that was assumed, "" where the file says it or is UTF-8.
    """

    pages: int
    lines: int
    characters: int
    chunks: int
    ending: str = ""
    charset: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRequest:
    """The header of an upload; see loci.memory.v1.UploadHeader. `file_id` is minted."""

    file_id: UUID
    folder_id: UUID
    name: str
    media_type: str
    on_duplicate: OnDuplicate
    is_retry: bool = False
    is_text: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """Bytes that came whole. upload_id: where the parts are; is_retry: see loci.memory.v1.UploadHeader."""

    id: UUID
    upload_id: UUID
    folder_id: UUID
    name: str
    media_type: str
    size: int
    sha256: bytes
    is_retry: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A file as its job finds it. upload_id: None once it was parsed; tries: how often that was begun.

    embedding: of the folder, "" for none; model: whose vectors it has, None before the first.
    """

    file: File
    upload_id: UUID | None
    tries: int
    embedding: str
    model: EmbeddingModel | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Pieces to make searchable, the first of them at the place where the file's progress stands.

    words: of each, see `words.index_words`; vectors: unit, None for a piece without; model: of all of them.
    """

    chunks: Sequence[Chunk]
    words: Sequence[Sequence[str]]
    vectors: Sequence[Sequence[float] | None]
    model: EmbeddingModel | None


def subject_of(folder_id: UUID, file_id: UUID) -> str:
    """Returns the subject of a file's job: its passages are found by both, also when the file is gone."""
    return f"{folder_id}/{file_id}"
