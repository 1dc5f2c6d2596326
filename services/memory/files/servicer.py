"""The part of loci.memory.v1.FolderService that is about files."""

from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from loci.memory.v1 import folder_service_pb2_grpc as folder_grpc
from services.common.codec import Codec
from services.common.context import current
from services.common.core.paging import Moment, PageOf, moment_token
from services.common.errors import InvalidArgument
from services.common.ids import from_public, optional_id, uuid7
from services.common.page_requests import page_by_id
from services.memory.core.ports.files import FileStore, FolderStore, IngestionStore
from services.memory.files.model import File, OnDuplicate, UploadRequest
from services.memory.files.service import MEBIBYTE, UploadService

_PER_PAGE = 50
# Characters of texts in one answer, with which it is well below the limit of messages; bytes of a single text.
_MOST_CONTENT = 8_000_000
_MOST_BYTES = 30 * MEBIBYTE

_FILES = Codec(File, folder_pb2.File, leave=("folder_name", "status", "chunk_count", "embedded_count"))


class FileServicer(folder_grpc.FolderServiceServicer):
    """Uploads, and files as they are stored."""

    def __init__(
        self,
        files: FileStore,
        folders: FolderStore,
        ingestion: IngestionStore,
        uploads: UploadService,
        wake: Callable[[], None],
    ) -> None:
        """Takes `wake`, which says that there is a job to do."""
        self._files = files
        self._folders = folders
        self._ingestion = ingestion
        self._uploads = uploads
        self._wake = wake

    async def UploadFile(
        self, request_iterator: AsyncIterator[folder_pb.UploadFileRequest], context: Any
    ) -> folder_pb.UploadFileResponse:
        caller = current()
        first = await anext(aiter(request_iterator), None)
        if first is None or not first.HasField("header"):
            raise InvalidArgument("an upload begins with its header", reason="FILE_INVALID")
        try:
            file, is_new = await self._uploads.take(
                caller.organization_id, caller.user_id, upload_request(first.header), _data(request_iterator)
            )
        finally:
            # grpc.aio tells callers who are still sending of a failure within, not of what they are answered.
            async for _ in request_iterator:
                pass
        if is_new:
            self._wake()
        return folder_pb.UploadFileResponse(file=file_message(file), is_new=is_new)

    async def GetFile(self, request: folder_pb.GetFileRequest, context: Any) -> folder_pb.GetFileResponse:
        organization_id, file_id = current().organization_id, from_public("file", request.file_id)
        folder_id = optional_id("source", request.folder_id)
        if folder_id is not None:
            await self._folders.get(organization_id, folder_id)
        file = await self._files.get(organization_id, file_id, folder_id)
        content = await self._content(organization_id, file) if request.include_content else None
        if request.include_content and content is None and file.has_text:
            sentence = f"the text of {file.path!r} is larger than {_MOST_BYTES // MEBIBYTE} MiB, the most that is sent"
            raise InvalidArgument(sentence, reason="FILE_TOO_LARGE")
        return folder_pb.GetFileResponse(file=file_message(file, content))

    async def ListFiles(self, request: folder_pb.ListFilesRequest, context: Any) -> folder_pb.ListFilesResponse:
        organization_id = current().organization_id
        page = page_by_id(request.page, "file", _PER_PAGE, ascending=True)
        folder_id = from_public("source", request.folder_id)
        result = await self._files.list(organization_id, folder_id, page, unfinished=request.unfinished)
        if request.include_content:
            return await self._with_contents(organization_id, result)
        return folder_pb.ListFilesResponse(
            files=[file_message(file) for file in result.items], next_page_token=result.next_token
        )

    async def DeleteFile(self, request: folder_pb.DeleteFileRequest, context: Any) -> folder_pb.DeleteFileResponse:
        organization_id, (folder_id, file_id) = current().organization_id, _key(request)
        await self._files.delete(organization_id, folder_id, file_id)
        while await self._ingestion.remove_passages(organization_id, folder_id, file_id):
            pass
        return folder_pb.DeleteFileResponse()

    async def RetryFile(self, request: folder_pb.RetryFileRequest, context: Any) -> folder_pb.RetryFileResponse:
        file = await self._files.retry(current().organization_id, *_key(request))
        self._wake()
        return folder_pb.RetryFileResponse(file=file_message(file))

    async def _with_contents(self, organization_id: UUID, page: PageOf[File]) -> folder_pb.ListFilesResponse:
        """Returns a page with texts, cut short where they become too much; the next one goes on there.

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
            files.append(file_message(file, await self._content(organization_id, file)))
        return folder_pb.ListFilesResponse(files=files, next_page_token=token)

    async def _content(self, organization_id: UUID, file: File) -> str | None:
        return await self._files.content(organization_id, file.id, _MOST_BYTES) if file.has_text else None


def _key(request: folder_pb.DeleteFileRequest | folder_pb.RetryFileRequest) -> tuple[UUID, UUID]:
    return from_public("source", request.folder_id), from_public("file", request.file_id)


async def _data(requests: AsyncIterator[folder_pb.UploadFileRequest]) -> AsyncIterator[bytes]:
    """Returns the bytes of an upload. Raises InvalidArgument (FILE_INVALID) where there is something else."""
    async for request in requests:
        if not request.HasField("data"):
            raise InvalidArgument("after its header, an upload has data alone", reason="FILE_INVALID")
        yield request.data


def upload_request(header: folder_pb.UploadHeader) -> UploadRequest:
    """Raises InvalidArgument (INVALID_ID)."""
    return UploadRequest(
        file_id=from_public("file", header.file_id) if header.file_id else uuid7(),
        folder_id=from_public("source", header.folder_id),
        name=header.name,
        media_type=header.media_type,
        on_duplicate=OnDuplicate(header.on_duplicate or OnDuplicate.SUFFIX),
        is_retry=header.is_retry,
        is_text=header.is_text,
    )


def file_message(file: File, content: str | None = None) -> folder_pb2.File:
    """Returns a file on the wire."""
    return _FILES.encode(
        file,
        path=file.path,
        status=int(file.status),
        total_chunks=file.chunk_count,
        chunks_embedded=file.embedded_count,
        content=content,
    )
