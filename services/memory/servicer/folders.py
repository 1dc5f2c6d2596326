"""loci.memory.v1.FolderService."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from services.common.context import current
from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.common.page_requests import page_by_id
from services.common.paging import Moment, PageOf, moment_token
from services.memory.convert import fields, folders
from services.memory.convert.agent_files import folder_message
from services.memory.files.model import File
from services.memory.files.names import checked_changes, checked_folder
from services.memory.files.ports import FileStore, FolderStore, IngestionStore
from services.memory.files.ports_agents import AgentFileStore
from services.memory.files.uploads import MEBIBYTE, Uploads
from services.memory.ports import Embedder
from services.memory.servicer.agent_files import AgentFileServicer
from services.memory.servicer.refusals import refusals

_PER_PAGE = 50
_CHECK_SECONDS = 10.0
# Characters of texts in one answer, with which it is well below the limit of messages; bytes of a single text.
_MOST_CONTENT = 8_000_000
_MOST_BYTES = 30 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class FolderParts:
    """What the servicer works with. `wake`: there is a job to do."""

    folders: FolderStore
    files: FileStore
    ingestion: IngestionStore
    uploads: Uploads
    embedder: Embedder
    wake: Callable[[], None]


class FolderServicer(AgentFileServicer):
    """loci.memory.v1.FolderService."""

    def __init__(self, agent_files: AgentFileStore, parts: FolderParts) -> None:
        super().__init__(agent_files)
        self._parts = parts

    async def CreateFolder(
        self, request: folder_pb.CreateFolderRequest, context: Any
    ) -> folder_pb.CreateFolderResponse:
        caller = current()
        with refusals():
            draft = checked_folder(folders.folder_draft(request.folder))
        if draft.embedding:
            await self._parts.embedder.check(draft.embedding, _CHECK_SECONDS)
        folder = await self._parts.folders.create(caller.organization_id, caller.user_id, draft)
        return folder_pb.CreateFolderResponse(folder=folder_message(folder))

    async def GetFolder(self, request: folder_pb.GetFolderRequest, context: Any) -> folder_pb.GetFolderResponse:
        folder = await self._parts.folders.get(current().organization_id, from_public("source", request.folder_id))
        return folder_pb.GetFolderResponse(folder=folder_message(folder))

    async def ListFolders(self, request: folder_pb.ListFoldersRequest, context: Any) -> folder_pb.ListFoldersResponse:
        with refusals():
            page = page_by_id(request.page, "source", _PER_PAGE, ascending=True)
            found = await self._parts.folders.list(current().organization_id, fields.text(request, "name"), page)
        return folder_pb.ListFoldersResponse(
            folders=[folder_message(folder) for folder in found.items], next_page_token=found.next_token
        )

    async def CountFolders(
        self, request: folder_pb.CountFoldersRequest, context: Any
    ) -> folder_pb.CountFoldersResponse:
        counted, files, size = await self._parts.folders.count(current().organization_id)
        return folder_pb.CountFoldersResponse(folders=counted, files=files, total_size=size)

    async def UpdateFolder(
        self, request: folder_pb.UpdateFolderRequest, context: Any
    ) -> folder_pb.UpdateFolderResponse:
        caller, folder_id = current(), from_public("source", request.folder_id)
        with refusals():
            changes = checked_changes(folders.folder_changes(request))
        folder = await self._parts.folders.update(caller.organization_id, caller.user_id, folder_id, changes)
        return folder_pb.UpdateFolderResponse(folder=folder_message(folder))

    async def DeleteFolder(
        self, request: folder_pb.DeleteFolderRequest, context: Any
    ) -> folder_pb.DeleteFolderResponse:
        await self._parts.folders.delete(current().organization_id, from_public("source", request.folder_id))
        self._parts.wake()
        return folder_pb.DeleteFolderResponse()

    async def UploadFile(
        self, request_iterator: AsyncIterator[folder_pb.UploadFileRequest], context: Any
    ) -> folder_pb.UploadFileResponse:
        caller = current()
        first = await anext(aiter(request_iterator), None)
        if first is None or not first.HasField("header"):
            raise InvalidArgument("an upload begins with its header", reason="FILE_INVALID")
        try:
            with refusals():
                file, is_new = await self._parts.uploads.take(
                    caller.organization_id, caller.user_id, folders.incoming(first.header), _data(request_iterator)
                )
        finally:
            # grpc.aio tells callers who are still sending of a failure within, not of what they are answered.
            async for _ in request_iterator:
                pass
        if is_new:
            self._parts.wake()
        return folder_pb.UploadFileResponse(file=folders.file_message(file))

    async def GetFile(self, request: folder_pb.GetFileRequest, context: Any) -> folder_pb.GetFileResponse:
        organization_id, file_id = current().organization_id, from_public("file", request.file_id)
        folder_id = from_public("source", request.folder_id) if request.folder_id else None
        if folder_id is not None:
            await self._parts.folders.get(organization_id, folder_id)
        file = await self._parts.files.get(organization_id, file_id, folder_id)
        content = await self._content(organization_id, file) if request.include_content else None
        if request.include_content and content is None and file.has_text:
            sentence = f"the text of {file.path!r} is larger than {_MOST_BYTES // MEBIBYTE} MiB, the most that is sent"
            raise InvalidArgument(sentence, reason="FILE_TOO_LARGE")
        return folder_pb.GetFileResponse(file=folders.file_message(file, content))

    async def ListFiles(self, request: folder_pb.ListFilesRequest, context: Any) -> folder_pb.ListFilesResponse:
        organization_id = current().organization_id
        with refusals():
            page = page_by_id(request.page, "file", _PER_PAGE, ascending=True)
            folder_id = from_public("source", request.folder_id)
            found = await self._parts.files.list(organization_id, folder_id, page, unfinished=request.unfinished)
        if request.include_content:
            return await self._with_contents(organization_id, found)
        return folder_pb.ListFilesResponse(
            files=[folders.file_message(file) for file in found.items], next_page_token=found.next_token
        )

    async def DeleteFile(self, request: folder_pb.DeleteFileRequest, context: Any) -> folder_pb.DeleteFileResponse:
        organization_id, (folder_id, file_id) = current().organization_id, _key(request)
        await self._parts.files.delete(organization_id, folder_id, file_id)
        while await self._parts.ingestion.remove_passages(organization_id, folder_id, file_id):
            pass
        return folder_pb.DeleteFileResponse()

    async def RetryFile(self, request: folder_pb.RetryFileRequest, context: Any) -> folder_pb.RetryFileResponse:
        file = await self._parts.files.retry(current().organization_id, *_key(request))
        self._parts.wake()
        return folder_pb.RetryFileResponse(file=folders.file_message(file))

    async def _with_contents(self, organization_id: UUID, page: PageOf[File]) -> folder_pb.ListFilesResponse:
        """A page with texts, cut short where they become too much; the next one goes on there.

        A text that is too large by itself is left out.
        """
        files: list[folder_pb2.File] = []
        left, token = _MOST_CONTENT, page.next_token
        for file in page.items:
            left -= file.char_count
            if files and left < 0:
                last = page.items[len(files) - 1]
                token = moment_token(Moment(last.created_at, last.id))
                break
            files.append(folders.file_message(file, await self._content(organization_id, file)))
        return folder_pb.ListFilesResponse(files=files, next_page_token=token)

    async def _content(self, organization_id: UUID, file: File) -> str | None:
        return await self._parts.files.content(organization_id, file.id, _MOST_BYTES) if file.has_text else None


def _key(request: folder_pb.DeleteFileRequest | folder_pb.RetryFileRequest) -> tuple[UUID, UUID]:
    return from_public("source", request.folder_id), from_public("file", request.file_id)


async def _data(requests: AsyncIterator[folder_pb.UploadFileRequest]) -> AsyncIterator[bytes]:
    """The bytes of an upload. Raises InvalidArgument (FILE_INVALID) where there is something else."""
    async for request in requests:
        if not request.HasField("data"):
            raise InvalidArgument("after its header, an upload has data alone", reason="FILE_INVALID")
        yield request.data
