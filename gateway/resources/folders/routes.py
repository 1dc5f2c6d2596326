"""Folders; with their files also under /sources, their older name."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, TEXT, WHOLE, array
from gateway.resources.agents.responses import embedding_config
from gateway.resources.agents.routes import for_each
from gateway.resources.archives.responses import passage_answers, refuse_other_embedding
from gateway.resources.archives.schemas import PASSAGE
from gateway.resources.folders import files as folder_files
from gateway.resources.folders import requests as bodies
from gateway.resources.folders.responses import folder_to_rest
from gateway.resources.folders.schemas import FOLDER, FOLDERS_DESCRIBED
from gateway.rest.convert import Rest
from gateway.rest.paging import FIRST_PAGE, descending, one_page, paged
from gateway.rest.params import FolderId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import agent_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import folder_pb2, folder_service_pb2, passage_service_pb2
from services.common.context import current
from services.common.errors import NotFound
from services.common.ids import to_public

_routes = APIRouter(tags=["folders"])

# Of a description of everything: more would be a long answer.
_MOST_DESCRIBED = 1_000


@_routes.post("")
@returns(FOLDER)
async def create_folder(body: bodies.CreateFolder, loci: Loci) -> Response:
    """Creates a folder."""
    request = bodies.create_request(body, loci.settings.default_embedding)
    return await _answer(loci, (await loci.peers.call(loci.peers.folders.CreateFolder, request)).folder)


@_routes.get("")
@returns(array(FOLDER))
@paged(50, "asc")
async def list_folders(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    name: str | None = None,
) -> Response:
    """A page of folders, oldest first; `name`: only those whose name contains it."""
    request = folder_service_pb2.ListFoldersRequest(page=page, name_search=name or "")
    response = await loci.peers.call(loci.peers.folders.ListFolders, request)
    return json_response([await _rest(loci, folder) for folder in response.folders])


@_routes.get("/count")
@returns(WHOLE)
async def count_folders(loci: Loci) -> Response:
    """How many there are."""
    request = folder_service_pb2.CountFoldersRequest()
    return json_response((await loci.peers.call(loci.peers.folders.CountFolders, request)).folders)


@_routes.get("/metadata")
@returns(FOLDERS_DESCRIBED)
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
@returns(TEXT)
async def find_folder(folder_name: str, loci: Loci) -> Response:
    """The id of the folder with this name. Lists can be asked for a name as well."""
    request = folder_service_pb2.ListFoldersRequest(page=PageRequest(page_size=1), name=folder_name)
    page = await loci.peers.call(loci.peers.folders.ListFolders, request)
    if not page.folders:
        raise NotFound(f"there is no folder named {folder_name!r}", reason="FOLDER_NOT_FOUND")
    return json_response(page.folders[0].id)


@_routes.get("/{folder_id}")
@returns(FOLDER)
async def retrieve_folder(folder_id: FolderId, loci: Loci) -> Response:
    """One folder."""
    request = folder_service_pb2.GetFolderRequest(folder_id=folder_id)
    return await _answer(loci, (await loci.peers.call(loci.peers.folders.GetFolder, request)).folder)


@_routes.patch("/{folder_id}")
@returns(FOLDER)
async def update_folder(folder_id: FolderId, body: bodies.UpdateFolder, loci: Loci) -> Response:
    """Changes what the body names. The embedding model is changed by a route of its own."""
    if body.embedding_config is not None:
        get = folder_service_pb2.GetFolderRequest(folder_id=folder_id)
        folder = (await loci.peers.call(loci.peers.folders.GetFolder, get)).folder
        embedding = body.embedding_config.named()
        refuse_other_embedding(embedding, folder.embedding, f"/folders/{folder_id}", "embedding_config")
    request = bodies.update_request(folder_id, body)
    if request is None:
        return await retrieve_folder(folder_id, loci)
    return await _answer(loci, (await loci.peers.call(loci.peers.folders.UpdateFolder, request)).folder)


@_routes.delete("/{folder_id}")
@returns(NULL)
async def delete_folder(folder_id: FolderId, loci: Loci) -> Response:
    """Deletes a folder with its files, for every agent; whose last one it was loses the tools for files."""
    rpc_request = folder_service_pb2.ListFolderAgentsRequest(folder_id=folder_id)
    await _detach(loci, folder_id, (await loci.peers.call(loci.peers.folders.ListFolderAgents, rpc_request)).agent_ids)
    request = folder_service_pb2.DeleteFolderRequest(folder_id=folder_id)
    await loci.peers.call(loci.peers.folders.DeleteFolder, request)
    return json_response(None)


async def _detach(loci: Services, folder_id: str, agent_ids: Sequence[str]) -> None:
    async def one(agent_id: str) -> None:
        request = agent_service_pb2.DetachFolderRequest(agent_id=agent_id, folder_id=folder_id)
        # The agent may be gone already.
        with suppress(NotFound):
            await loci.peers.call(loci.peers.agents.DetachFolder, request)

    await for_each(agent_ids, one)


@_routes.get("/{folder_id}/passages")
@returns(array(PASSAGE))
@paged(100)
async def list_passages(
    folder_id: FolderId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """A page of the pieces of a folder's files, newest first."""
    request = passage_service_pb2.ListPassagesRequest(folder_id=folder_id, page=page)
    response = await loci.peers.call(loci.peers.passages.ListPassages, request)
    return await passage_answers(loci, response.passages)


@_routes.get("/{folder_id}/agents")
@returns(array(TEXT))
@paged(100)
async def list_agents(
    folder_id: FolderId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """The ids of the agents that the folder is attached to, the last one first."""
    request = folder_service_pb2.ListFolderAgentsRequest(folder_id=folder_id)
    ids = list((await loci.peers.call(loci.peers.folders.ListFolderAgents, request)).agent_ids)
    if descending(page):
        ids.reverse()
    return json_response(one_page(ids, page, key=str))


router = APIRouter()
for routes in (_routes, folder_files.routes):
    router.include_router(routes, prefix="/folders")
    router.include_router(routes, prefix="/sources", deprecated=True)


async def _answer(loci: Services, folder: folder_pb2.Folder) -> Response:
    return json_response(await _rest(loci, folder))


async def _rest(loci: Services, folder: folder_pb2.Folder) -> Rest:
    config = embedding_config(folder.embedding, await loci.catalogue.models())
    return folder_to_rest(folder, config, to_public("org", current().organization_id))


async def _described(loci: Services) -> list[dict[str, Any]]:
    """Returns the first folders with the first files of each."""
    folders, first = loci.peers.folders, PageRequest(page_size=_MOST_DESCRIBED)
    page = await loci.peers.call(folders.ListFolders, folder_service_pb2.ListFoldersRequest(page=first))
    described = []
    for folder in page.folders:
        request = folder_service_pb2.ListFilesRequest(folder_id=folder.id, page=first)
        try:
            files = (await loci.peers.call(folders.ListFiles, request)).files
        except NotFound:
            continue  # deleted meanwhile
        listed = [{"file_id": file.id, "file_name": file.name, "file_size": file.size} for file in files]
        described.append({"source_id": folder.id, "source_name": folder.name, "files": listed})
    return described
