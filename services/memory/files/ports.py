"""What folders and files need from outside; `adapters/files/` has it.

Every method of a store takes the tenant first; the servicers take it from the verified call context.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.common.paging import Page, PageOf
from services.memory.files.kinds import Kind
from services.memory.files.model import (
    Chunk,
    File,
    FileStatus,
    Folder,
    FolderChanges,
    FolderDraft,
    OnDuplicate,
    TextPage,
)
from services.memory.model import EmbeddingModel

# Kinds of jobs. Subject of FILE_JOB: `subject_of`; of the others a bare UUID.
FILE_JOB = "file"
FOLDER_JOB = "folder"
UPLOAD_JOB = "upload"


def subject_of(folder_id: UUID, file_id: UUID) -> str:
    """The subject of a file's job: its passages are found by both, also when the file is gone."""
    return f"{folder_id}/{file_id}"


class Unparsable(Exception):
    """The file has no text to take out. `message` is a sentence for whoever uploaded it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class FileMoved(Exception):
    """The file is not in the state that was read: deleted, retried, or taken on by another worker. Stays inside."""


class ModelMoved(Exception):
    """The folder has another embedding model than the vectors were made by; read again. Stays inside."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What follows the pages of a file that was parsed."""

    pages: int
    lines: int
    characters: int
    chunks: int


class Parser(Protocol):
    """Takes the text out of files."""

    def parse(self, kind: Kind, data: AsyncIterator[bytes]) -> AsyncGenerator[TextPage | Parsed]:
        """The pages in order, then one Parsed. Raises Unparsable."""


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

    words: of each, see `words.to_index`; vectors: unit, None for a piece without; model: of all of them.
    """

    chunks: Sequence[Chunk]
    words: Sequence[Sequence[str]]
    vectors: Sequence[Sequence[float] | None]
    model: EmbeddingModel | None


class FolderStore(Protocol):
    """Folders."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: FolderDraft) -> Folder:
        """Raises AlreadyExists (FOLDER_NAME_TAKEN) unless the same was created before."""

    async def get(self, organization_id: UUID, folder_id: UUID) -> Folder:
        """Raises NotFound (FOLDER_NOT_FOUND)."""

    async def update(self, organization_id: UUID, user_id: UUID, folder_id: UUID, changes: FolderChanges) -> Folder:
        """Raises NotFound (FOLDER_NOT_FOUND), AlreadyExists (FOLDER_NAME_TAKEN)."""

    async def delete(self, organization_id: UUID, folder_id: UUID) -> None:
        """The folder at once, what was in it by FOLDER_JOB. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def empty(self, organization_id: UUID, folder_id: UUID) -> bool:
        """Removes some files that a deleted folder left; False when there are none."""

    async def count(self, organization_id: UUID) -> tuple[int, int, int]:
        """Folders, files, and the bytes of these."""

    async def list(self, organization_id: UUID, name: str | None, page: Page) -> PageOf[Folder]:
        """Raises NotFound (FOLDER_NOT_FOUND) for a cursor that does not exist."""


class UploadStore(Protocol):
    """Uploads on their way in."""

    async def begin(self, organization_id: UUID, upload_id: UUID) -> None:
        """Parts will come; what is left of them when nobody takes them is removed by UPLOAD_JOB."""

    async def add(self, organization_id: UUID, upload_id: UUID, part: int, data: bytes) -> None:
        """Keeps a part, for itself."""

    async def finish(
        self, organization_id: UUID, user_id: UUID, upload: Upload, on_duplicate: OnDuplicate
    ) -> tuple[File, bool]:
        """The file, with its job, and whether these bytes were taken: all or nothing.

        Raises NotFound (FOLDER_NOT_FOUND), AlreadyExists (FILE_NAME_TAKEN), Aborted (FILE_INVALID) for an upload that
        was dropped meanwhile.
        """

    async def drop(self, organization_id: UUID, upload_id: UUID) -> None:
        """Removes the parts of an upload that became no file."""

    def parts(self, organization_id: UUID, upload_id: UUID) -> AsyncIterator[bytes]:
        """The bytes, a part at a time."""


class FileStore(Protocol):
    """Files."""

    async def get(self, organization_id: UUID, file_id: UUID, folder_id: UUID | None = None) -> File:
        """Raises NotFound (FILE_NOT_FOUND), also for one of another folder than `folder_id`."""

    async def find(self, organization_id: UUID, folder_id: UUID, name: str) -> File | None:
        """By its own name. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def list(
        self, organization_id: UUID, folder_id: UUID, page: Page, *, unfinished: bool = False
    ) -> PageOf[File]:
        """`unfinished`: only those that are still worked on.

        Raises NotFound (FOLDER_NOT_FOUND); NotFound (FILE_NOT_FOUND) for a cursor that does not exist.
        """

    async def content(self, organization_id: UUID, file_id: UUID, most_bytes: int) -> str | None:
        """The whole text; None where it is larger, as UTF-8."""

    async def delete(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> None:
        """The file at once, its passages by FILE_JOB. Raises NotFound (FILE_NOT_FOUND)."""

    async def retry(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> File:
        """One that was given up is asked for again. Raises NotFound (FILE_NOT_FOUND)."""


class IngestionStore(Protocol):
    """What a file's job reads and writes. Each write holds the file to the state that was read: else FileMoved."""

    async def work(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> Work | None:
        """None where there is no such file any more."""

    async def start_parsing(self, organization_id: UUID, file_id: UUID) -> None:
        """PENDING or PARSING becomes PARSING; pages of a try that did not end are removed."""

    async def add_pages(self, organization_id: UUID, file_id: UUID, pages: Sequence[TextPage]) -> None:
        """Nobody sees them yet."""

    async def finish_parsing(self, organization_id: UUID, work: Work, parsed: Parsed) -> FileStatus:
        """PARSING becomes EMBEDDING, or COMPLETED where there is nothing to embed; the upload goes."""

    async def chunks(self, organization_id: UUID, file_id: UUID, place: int, limit: int) -> Sequence[Chunk]:
        """The next pieces, from a place on."""

    async def add_batch(self, organization_id: UUID, work: Work, batch: Batch) -> FileStatus:
        """Passages, vectors and progress, all or nothing. Raises ModelMoved."""

    async def note(self, organization_id: UUID, file_id: UUID, error: str) -> None:
        """Why the last try failed, of a file that is still tried."""

    async def give_up(self, organization_id: UUID, work: Work, error: str) -> None:
        """It becomes ERROR; its passages are to be removed."""

    async def remove_passages(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> bool:
        """Removes some passages of a file; False when there are none."""
