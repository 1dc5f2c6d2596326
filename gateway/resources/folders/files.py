"""The files of a folder."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.folders.responses import file_to_rest
from gateway.resources.folders.schemas import FILE
from gateway.resources.folders.uploads import file_part, store
from gateway.rest.convert import Rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import FileId, FolderId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from gateway.turns.idempotency import is_retry
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.context import current
from services.common.ids import to_public, uuid7

# Mounted by folders.py.
routes = APIRouter(tags=["folders"])

_ON_DUPLICATE = {
    "suffix": folder_service_pb2.ON_DUPLICATE_SUFFIX,
    "skip": folder_service_pb2.ON_DUPLICATE_SKIP,
    "error": folder_service_pb2.ON_DUPLICATE_ERROR,
    "replace": folder_service_pb2.ON_DUPLICATE_REPLACE,
}
_DuplicateHandling = Literal["skip", "error", "suffix", "replace"]
_FILE_SCHEMA = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
_UPLOAD_BODY = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FILE_SCHEMA}}}}


@routes.post("/{folder_id}/upload", openapi_extra=_UPLOAD_BODY)
@returns(FILE)
async def upload_file(
    request: Request,
    folder_id: FolderId,
    loci: Loci,
    duplicate_handling: _DuplicateHandling = "suffix",
    name: Annotated[str | None, Query(description="Instead of the name that the file is sent under.")] = None,
) -> Response:
    """Takes a file in. It is stored when this is answered; its text is read and embedded in the background.

    The answer has its name as agents see it, with the folder's.
    """
    part = await file_part(request)
    header = folder_service_pb2.UploadHeader(
        file_id=to_public("file", uuid7()),
        folder_id=folder_id,
        name=name or part.name,
        media_type=part.media_type,
        on_duplicate=_ON_DUPLICATE[duplicate_handling],
        is_retry=is_retry(request),
    )
    try:
        response = await store(loci.peers, header, part.pieces)
    finally:
        await part.rest()
    skipped = duplicate_handling == "skip" and not response.is_new
    stored = _file_rest(response.file) | {"file_name": response.file.path}
    return json_response(stored, headers={"x-upload-result": "skipped"} if skipped else {})


@routes.get("/{folder_id}/files")
@returns(array(FILE))
@paged(1_000)
async def list_files(
    folder_id: FolderId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    include_content: bool = False,
) -> Response:
    """A page of a folder's files, newest first. With their contents it may be shorter than was asked for."""
    request = folder_service_pb2.ListFilesRequest(
        folder_id=folder_id,
        page=page,
        include_content=include_content,
    )
    response = await loci.peers.call(loci.peers.folders.ListFiles, request)
    return json_response([_file_rest(file) for file in response.files])


@routes.get("/{folder_id}/files/{file_id}")
@returns(FILE)
async def retrieve_file(folder_id: FolderId, file_id: FileId, loci: Loci, include_content: bool = False) -> Response:
    """One file."""
    request = folder_service_pb2.GetFileRequest(folder_id=folder_id, file_id=file_id, include_content=include_content)
    return json_response(_file_rest((await loci.peers.call(loci.peers.folders.GetFile, request)).file))


@routes.post("/{folder_id}/files/{file_id}/retry")
@returns(FILE)
async def retry_file(folder_id: FolderId, file_id: FileId, loci: Loci) -> Response:
    """Tries a file again that was given up."""
    request = folder_service_pb2.RetryFileRequest(folder_id=folder_id, file_id=file_id)
    return json_response(_file_rest((await loci.peers.call(loci.peers.folders.RetryFile, request)).file))


@routes.delete("/{folder_id}/{file_id}", status_code=204)
@returns(status=204)
async def delete_file(folder_id: FolderId, file_id: FileId, loci: Loci) -> Response:
    """Deletes a file; whoever has it open, has it no more."""
    request = folder_service_pb2.DeleteFileRequest(folder_id=folder_id, file_id=file_id)
    await loci.peers.call(loci.peers.folders.DeleteFile, request)
    return Response(status_code=204)


def _file_rest(file: folder_pb2.File) -> Rest:
    return file_to_rest(file, to_public("org", current().organization_id))
