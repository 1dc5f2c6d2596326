"""Stores of folders, files and what agents have open of them, and the parser that takes their text out."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.memory.agent_files.model import AgentFile, FileLimits, FileRange, Opening, Piece
from services.memory.agent_tools.model import CallRecord
from services.memory.core.file_text.kinds import FileKind
from services.memory.core.file_text.lookup import KnownFile
from services.memory.files.model import (
    Batch,
    Chunk,
    File,
    FileStatus,
    OnDuplicate,
    ParseSummary,
    TextPage,
    Upload,
    Work,
)
from services.memory.folders.model import Folder, FolderDraft


class FolderStore(Protocol):
    """Folders."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: FolderDraft) -> Folder:
        """Raises AlreadyExists (FOLDER_NAME_TAKEN) unless the same was created before."""

    async def get(self, organization_id: UUID, folder_id: UUID) -> Folder:
        """Raises NotFound (FOLDER_NOT_FOUND)."""

    async def update(self, organization_id: UUID, user_id: UUID, folder_id: UUID, changes: Mapping[str, Any]) -> Folder:
        """Raises NotFound (FOLDER_NOT_FOUND), AlreadyExists (FOLDER_NAME_TAKEN)."""

    async def delete(self, organization_id: UUID, folder_id: UUID) -> None:
        """Returns the folder at once, what was in it by FOLDER_JOB. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def empty(self, organization_id: UUID, folder_id: UUID) -> bool:
        """Removes some files that a deleted folder left; False when there are none."""

    async def count(self, organization_id: UUID) -> tuple[int, int, int]:
        """Returns folders, files, and the bytes of these."""

    async def list(
        self, organization_id: UUID, page: Page, *, name: str | None = None, name_search: str = ""
    ) -> PageOf[Folder]:
        """Returns those of this name, or whose name contains `name_search` in any case.

        Raises NotFound (CURSOR_NOT_FOUND) for a cursor that does not exist.
        """


class Parser(Protocol):
    """Takes the text out of files."""

    def parse(self, kind: FileKind, data: AsyncIterator[bytes]) -> AsyncGenerator[TextPage | ParseSummary]:
        """Returns the pages in order, then one Parsed. Raises Unparsable."""


class UploadStore(Protocol):
    """Uploads on their way in."""

    async def begin(self, organization_id: UUID, upload_id: UUID) -> None:
        """Announces parts; UPLOAD_JOB removes those that nobody takes."""

    async def add(self, organization_id: UUID, upload_id: UUID, part: int, data: bytes) -> None:
        """Keeps a part, for itself."""

    async def finish(
        self, organization_id: UUID, user_id: UUID, upload: Upload, on_duplicate: OnDuplicate
    ) -> tuple[File, bool]:
        """Returns the file, with its job, and whether these bytes were taken: all or nothing.

        Raises NotFound (FOLDER_NOT_FOUND), AlreadyExists (FILE_NAME_TAKEN), Aborted (FILE_INVALID) for an upload that
        was dropped meanwhile.
        """

    async def drop(self, organization_id: UUID, upload_id: UUID) -> None:
        """Removes the parts of an upload that became no file."""

    def parts(self, organization_id: UUID, upload_id: UUID) -> AsyncIterator[bytes]:
        """Returns the bytes, a part at a time."""


class FileStore(Protocol):
    """Files."""

    async def get(self, organization_id: UUID, file_id: UUID, folder_id: UUID | None = None) -> File:
        """Raises NotFound (FILE_NOT_FOUND), also for one of another folder than `folder_id`."""

    async def find(self, organization_id: UUID, folder_id: UUID, name: str) -> File | None:
        """Returns the file of this name. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def list(
        self, organization_id: UUID, folder_id: UUID, page: Page, *, unfinished: bool = False
    ) -> PageOf[File]:
        """Returns a page of files. unfinished: only those that are still worked on.

        Raises NotFound (FOLDER_NOT_FOUND); NotFound (CURSOR_NOT_FOUND) for a cursor that does not exist.
        """

    async def content(self, organization_id: UUID, file_id: UUID, most_bytes: int) -> str | None:
        """Returns the whole text; None where it is larger, as UTF-8."""

    async def delete(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> None:
        """Returns the file at once, its passages by FILE_JOB. Raises NotFound (FILE_NOT_FOUND)."""

    async def retry(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> File:
        """Returns one that was given up is asked for again. Raises NotFound (FILE_NOT_FOUND)."""


class IngestionStore(Protocol):
    """The rows of a file's job. Each write holds the file to the state that was read: else FileConflict."""

    async def work(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> Work | None:
        """Returns None where there is no such file any more."""

    async def start_parsing(self, organization_id: UUID, file_id: UUID) -> None:
        """Moves PENDING or PARSING to PARSING; removes the pages of a try that did not end."""

    async def add_pages(self, organization_id: UUID, file_id: UUID, pages: Sequence[TextPage]) -> None:
        """Stores pages, which nobody sees yet."""

    async def finish_parsing(self, organization_id: UUID, work: Work, parsed: ParseSummary) -> FileStatus:
        """Moves PARSING to EMBEDDING, or COMPLETED where there is nothing to embed; deletes the upload.

        The file is then open for every agent that has its folder.
        """

    async def chunks(self, organization_id: UUID, file_id: UUID, place: int, limit: int) -> Sequence[Chunk]:
        """Returns the next pieces, from a place on."""

    async def add_batch(self, organization_id: UUID, work: Work, batch: Batch) -> FileStatus:
        """Returns passages, vectors and progress, all or nothing. Raises ModelConflict."""

    async def note(self, organization_id: UUID, file_id: UUID, error: str) -> None:
        """Stores why the last try failed, of a file that is still tried."""

    async def give_up(self, organization_id: UUID, work: Work, error: str) -> None:
        """Moves it to ERROR; its passages are to be removed."""

    async def remove_passages(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> bool:
        """Removes some passages of a file; False when there are none."""


class AgentFileStore(Protocol):
    """Folders of agents, and which of their files are open. Changes of one agent's are made one after the other."""

    async def attach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID, limits: FileLimits) -> None:
        """Opens as many of its files as may be open, oldest first; those opened longest ago are closed for them.

        Where it is attached already, only the limits are kept. Raises NotFound (FOLDER_NOT_FOUND).
        """

    async def detach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID) -> int:
        """Returns how many are left, also where it was not attached. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def folders(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Folder]]:
        """Returns those of each agent that has some, in the order of attachment; in one statement."""

    async def agents_of(self, organization_id: UUID, folder_id: UUID) -> Sequence[UUID]:
        """Returns agents in the order of attachment. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def list(
        self, organization_id: UUID, agent_id: UUID, page: Page, *, is_open: bool | None
    ) -> PageOf[AgentFile]:
        """Returns files by the time of upload. Raises NotFound (CURSOR_NOT_FOUND) for an unknown cursor, Refused."""

    async def of_many(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[AgentFile]]:
        """Returns the files of each agent that has some, by the time of upload, at most 1,000; in one statement."""

    async def open(
        self,
        organization_id: UUID,
        agent_id: UUID,
        ranges: Sequence[FileRange],
        limits: FileLimits,
        *,
        close_others: bool = False,
        record: Callable[[Opening], CallRecord] | None = None,
    ) -> Opening:
        """Opens all of them or none, and keeps the record that is made of it in the same transaction.

        Raises Refused for more than may be open, NotFound (FILE_NOT_FOUND), FailedPrecondition (FILE_NOT_READY),
        CallRepeated.
        """

    async def close(self, organization_id: UUID, agent_id: UUID, file_id: UUID) -> None:
        """Raises NotFound (FILE_NOT_FOUND)."""

    async def close_all(self, organization_id: UUID, agent_id: UUID) -> Sequence[str]:
        """Returns the paths of those that were closed."""

    async def named(self, organization_id: UUID, agent_id: UUID, names: Sequence[str]) -> Sequence[KnownFile]:
        """Returns the agent's files that have one of these names, with or without folder."""

    async def files(self, organization_id: UUID, agent_id: UUID) -> Sequence[KnownFile]:
        """Returns all of the agent's, by path."""

    def pages(
        self, organization_id: UUID, files: Sequence[KnownFile]
    ) -> AsyncGenerator[Sequence[tuple[KnownFile, TextPage]]]:
        """Yields their text in order, as much at a time as may be held in memory."""

    async def pieces(self, organization_id: UUID, keys: Sequence[tuple[UUID, UUID]]) -> Mapping[UUID, Piece]:
        """Returns where passages stand in files, by their ids; asked for by folder and id."""
