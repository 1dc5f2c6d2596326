"""Folders and their files; under /sources by their older name."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway import convert
from gateway.agent_state import embedding_config
from gateway.bodies import folders as bodies
from gateway.body import JsonRoute
from gateway.convert import Rest
from gateway.embedding_changes import refuse_other_embedding
from gateway.params import Cursor, FileId, FolderId, Limit, Order, one_page, page_size
from gateway.passages import passage_answers
from gateway.responses import json_response
from gateway.services import Loci, Services
from gateway.uploads import file_part, store
from loci.memory.v1 import folder_pb2, folder_service_pb2, passage_service_pb2
from services.common.context import current
from services.common.errors import LociError, NotFound
from services.common.ids import to_public, uuid7

_routes = APIRouter(tags=["folders"], route_class=JsonRoute)

_ON_DUPLICATE = {
    "suffix": folder_service_pb2.ON_DUPLICATE_SUFFIX,
    "skip": folder_service_pb2.ON_DUPLICATE_SKIP,
    "error": folder_service_pb2.ON_DUPLICATE_ERROR,
    "replace": folder_service_pb2.ON_DUPLICATE_REPLACE,
}
_DuplicateHandling = Literal["skip", "error", "suffix", "replace"]
_FILE_SCHEMA = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
_UPLOAD_BODY = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FILE_SCHEMA}}}}
# Of a description of everything: more would be a long answer.
_MOST_DESCRIBED = 1_000


@_routes.post("")
async def create_folder(body: bodies.CreateFolder, loci: Loci) -> Response:
    """Creates a folder."""
    request = bodies.create_request(body, loci.settings.default_embedding)
    return await _answer(loci, (await loci.peers.call(loci.peers.folders.CreateFolder, request)).folder)


@_routes.get("")
async def list_folders(
    loci: Loci,
    before: Cursor = None,
    after: Cursor = None,
    limit: Limit = None,
    order: Order = "asc",
    order_by: Literal["created_at"] = "created_at",
    name: str | None = None,
) -> Response:
    """A page of folders, oldest first."""
    request = folder_service_pb2.ListFoldersRequest(
        page_size=page_size(limit, 50), after=after, before=before, descending=order == "desc", name=name
    )
    page = await loci.peers.call(loci.peers.folders.ListFolders, request)
    return json_response([await _rest(loci, folder) for folder in page.folders])


@_routes.get("/count")
async def count_folders(loci: Loci) -> Response:
    """How many there are."""
    request = folder_service_pb2.CountFoldersRequest()
    return json_response((await loci.peers.call(loci.peers.folders.CountFolders, request)).folders)


@_routes.get("/metadata")
async def describe_folders(loci: Loci, include_detailed_per_source_metadata: bool = False) -> Response:
    """How many folders and files there are, and how large these are; with each of them, where that is asked for."""
    counted = await loci.peers.call(loci.peers.folders.CountFolders, folder_service_pb2.CountFoldersRequest())
    return json_response(
        {
            "sources": await _described(loci) if include_detailed_per_source_metadata else [],
            "total_sources": counted.folders,
            "total_files": counted.files,
            "total_size": counted.total_size,
        }
    )


@_routes.get("/name/{folder_name}", deprecated=True)
async def find_folder(folder_name: str, loci: Loci) -> Response:
    """The id of the folder with this name. Lists can be asked for a name as well."""
    request = folder_service_pb2.ListFoldersRequest(page_size=1, name=folder_name)
    page = await loci.peers.call(loci.peers.folders.ListFolders, request)
    if not page.folders:
        raise NotFound(f"there is no folder named {folder_name!r}", reason="FOLDER_NOT_FOUND")
    return json_response(page.folders[0].id)


@_routes.get("/{folder_id}")
async def retrieve_folder(folder_id: FolderId, loci: Loci) -> Response:
    """One folder."""
    request = folder_service_pb2.GetFolderRequest(folder_id=folder_id)
    return await _answer(loci, (await loci.peers.call(loci.peers.folders.GetFolder, request)).folder)


@_routes.patch("/{folder_id}")
async def update_folder(folder_id: FolderId, body: bodies.UpdateFolder, loci: Loci) -> Response:
    """Changes what the body names. The embedding model is changed by a route of its own."""
    if body.embedding_config is not None:
        get = folder_service_pb2.GetFolderRequest(folder_id=folder_id)
        folder = (await loci.peers.call(loci.peers.folders.GetFolder, get)).folder
        wanted = body.embedding_config.named()
        refuse_other_embedding(wanted, folder.embedding, f"/folders/{folder_id}", "embedding_config")
    request = bodies.update_request(folder_id, body)
    if request is None:
        return await retrieve_folder(folder_id, loci)
    return await _answer(loci, (await loci.peers.call(loci.peers.folders.UpdateFolder, request)).folder)


@_routes.delete("/{folder_id}")
async def delete_folder(folder_id: FolderId, loci: Loci) -> Response:
    """Deletes a folder with its files, for every agent."""
    request = folder_service_pb2.DeleteFolderRequest(folder_id=folder_id)
    await loci.peers.call(loci.peers.folders.DeleteFolder, request)
    return json_response(None)


@_routes.post("/{folder_id}/upload", openapi_extra=_UPLOAD_BODY)
async def upload_file(
    request: Request,
    folder_id: FolderId,
    loci: Loci,
    duplicate_handling: _DuplicateHandling = "suffix",
    name: Annotated[str | None, Query(description="Instead of the name that the file is sent under.")] = None,
) -> Response:
    """Takes a file in. It is stored when this is answered; its text is read and embedded in the background."""
    part = await file_part(request)
    header = folder_service_pb2.UploadHeader(
        file_id=to_public("file", uuid7()),
        folder_id=folder_id,
        name=name or part.name,
        media_type=part.media_type,
        on_duplicate=_ON_DUPLICATE[duplicate_handling],
    )
    try:
        stored = await store(loci.peers, header, part.pieces)
    except LociError:
        await part.rest()
        raise
    await part.rest()
    return json_response(_file_rest(stored))


@_routes.get("/{folder_id}/files")
async def list_files(
    folder_id: FolderId,
    loci: Loci,
    before: Cursor = None,
    after: Cursor = None,
    limit: Limit = None,
    order: Order = "desc",
    order_by: Literal["created_at"] = "created_at",
    include_content: bool = False,
) -> Response:
    """A page of a folder's files, newest first. With their contents it may be shorter than was asked for."""
    request = folder_service_pb2.ListFilesRequest(
        folder_id=folder_id,
        page_size=page_size(limit, 1_000),
        after=after,
        before=before,
        descending=order == "desc",
        include_content=include_content,
    )
    page = await loci.peers.call(loci.peers.folders.ListFiles, request)
    return json_response([_file_rest(file) for file in page.files])


@_routes.get("/{folder_id}/files/{file_id}")
async def retrieve_file(folder_id: FolderId, file_id: FileId, loci: Loci, include_content: bool = False) -> Response:
    """One file."""
    request = folder_service_pb2.GetFileRequest(folder_id=folder_id, file_id=file_id, include_content=include_content)
    return json_response(_file_rest((await loci.peers.call(loci.peers.folders.GetFile, request)).file))


@_routes.post("/{folder_id}/files/{file_id}/retry")
async def retry_file(folder_id: FolderId, file_id: FileId, loci: Loci) -> Response:
    """Tries a file again that was given up."""
    request = folder_service_pb2.RetryFileRequest(folder_id=folder_id, file_id=file_id)
    return json_response(_file_rest((await loci.peers.call(loci.peers.folders.RetryFile, request)).file))


@_routes.get("/{folder_id}/passages")
async def list_passages(
    folder_id: FolderId,
    loci: Loci,
    before: Cursor = None,
    after: Cursor = None,
    limit: Limit = None,
    order: Order = "desc",
) -> Response:
    """A page of the pieces of a folder's files, newest first."""
    request = passage_service_pb2.ListPassagesRequest(
        folder_id=folder_id, page_size=page_size(limit, 100), after=after, before=before, descending=order == "desc"
    )
    page = await loci.peers.call(loci.peers.passages.ListPassages, request)
    return await passage_answers(loci, page.passages)


@_routes.get("/{folder_id}/agents")
async def list_agents(
    folder_id: FolderId,
    loci: Loci,
    before: Cursor = None,
    after: Cursor = None,
    limit: Limit = None,
    order: Order = "desc",
) -> Response:
    """The ids of the agents that the folder is attached to, the last one first."""
    request = folder_service_pb2.ListFolderAgentsRequest(folder_id=folder_id)
    ids = list((await loci.peers.call(loci.peers.folders.ListFolderAgents, request)).agent_ids)
    if order == "desc":
        ids.reverse()
    return json_response(one_page(ids, key=str, after=after, before=before, limit=page_size(limit, 100)))


@_routes.delete("/{folder_id}/{file_id}", status_code=204)
async def delete_file(folder_id: FolderId, file_id: FileId, loci: Loci) -> Response:
    """Deletes a file; whoever has it open, has it no more."""
    request = folder_service_pb2.DeleteFileRequest(folder_id=folder_id, file_id=file_id)
    await loci.peers.call(loci.peers.folders.DeleteFile, request)
    return Response(status_code=204)


router = APIRouter()
router.include_router(_routes, prefix="/folders")
router.include_router(_routes, prefix="/sources", deprecated=True, include_in_schema=False)


async def _answer(loci: Services, folder: folder_pb2.Folder) -> Response:
    return json_response(await _rest(loci, folder))


async def _rest(loci: Services, folder: folder_pb2.Folder) -> Rest:
    config = embedding_config(folder.embedding, await loci.catalogue.models())
    return convert.folder(folder, config, to_public("org", current().organization_id))


def _file_rest(file: folder_pb2.File) -> Rest:
    return convert.file(file, to_public("org", current().organization_id))


async def _described(loci: Services) -> list[dict[str, Any]]:
    """The first folders with the first files of each."""
    folders = loci.peers.folders
    page = await loci.peers.call(folders.ListFolders, folder_service_pb2.ListFoldersRequest(page_size=_MOST_DESCRIBED))
    described = []
    for folder in page.folders:
        asked = folder_service_pb2.ListFilesRequest(folder_id=folder.id, page_size=_MOST_DESCRIBED)
        try:
            files = (await loci.peers.call(folders.ListFiles, asked)).files
        except NotFound:
            continue  # deleted meanwhile
        shown = [{"file_id": file.id, "file_name": file.name, "file_size": file.size} for file in files]
        described.append({"source_id": folder.id, "source_name": folder.name, "files": shown})
    return described
