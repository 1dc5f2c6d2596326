"""Folders attached to an agent, and which of their files it has open; folders under /sources by their older name."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import MESSAGE, NULL, TEXT, array
from gateway.resources.agents.responses import folders_of
from gateway.resources.agents.routes import fetch
from gateway.resources.folders.schemas import AGENT_FILES, FOLDER
from gateway.rest import convert
from gateway.rest.paging import FIRST_PAGE, descending, one_page, paged
from gateway.rest.params import AgentId, FileId, FolderId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import agent_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.core.file_limits import file_limits

_folders = APIRouter(tags=["agents"])
_files = APIRouter(prefix="/agents/{agent_id}/files", tags=["agents"])


@_folders.get("")
@returns(array(FOLDER))
@paged(100)
async def list_folders(
    agent_id: AgentId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
) -> Response:
    """The folders of an agent, newest first."""
    agent = await fetch(loci, agent_id)
    folders = sorted(agent.folders, key=_age, reverse=descending(page))
    selected = one_page(folders, page, key=lambda folder: folder.id)
    return json_response(folders_of(selected, await loci.catalogue.models()))


@_folders.patch("/attach/{folder_id}")
@returns(NULL)
async def attach_folder(agent_id: AgentId, folder_id: FolderId, loci: Loci) -> Response:
    """Attaches a folder and the tools for its files, and opens as many of these as may be open."""
    request = agent_service_pb2.AttachFolderRequest(agent_id=agent_id, folder_id=folder_id)
    await loci.peers.call(loci.peers.agents.AttachFolder, request)
    return json_response(None)


@_folders.patch("/detach/{folder_id}")
@returns(NULL)
async def detach_folder(agent_id: AgentId, folder_id: FolderId, loci: Loci) -> Response:
    """Detaches a folder, with the last one the tools for files. One that is not attached stays so."""
    request = agent_service_pb2.DetachFolderRequest(agent_id=agent_id, folder_id=folder_id)
    await loci.peers.call(loci.peers.agents.DetachFolder, request)
    return json_response(None)


@_files.get("")
@returns(AGENT_FILES)
@paged(100, names="before after cursor limit order", empty={"files": [], "next_cursor": None, "has_more": False})
async def list_files(
    agent_id: AgentId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    is_open: bool | None = None,
) -> Response:
    """A page of the files of the agent's folders, newest first; of those that are open with what is in view."""
    request = folder_service_pb2.ListAgentFilesRequest(agent_id=agent_id, page=page, is_open=is_open)
    # The memory service does not know which agents there are.
    _, response = await asyncio.gather(
        fetch(loci, agent_id), loci.peers.call(loci.peers.folders.ListAgentFiles, request)
    )
    return json_response(
        {
            "files": [_file(file) for file in response.files],
            "next_cursor": response.files[-1].id if response.files else None,
            "has_more": bool(response.next_page_token),
        }
    )


@_files.patch("/close-all")
@returns(array(TEXT))
async def close_all_files(agent_id: AgentId, loci: Loci) -> Response:
    """Closes every open file; returns their names."""
    await fetch(loci, agent_id)
    request = folder_service_pb2.CloseAllFilesRequest(agent_id=agent_id)
    return json_response(list((await loci.peers.call(loci.peers.folders.CloseAllFiles, request)).closed_names))


@_files.patch("/{file_id}/open")
@returns(array(TEXT))
async def open_file(agent_id: AgentId, file_id: FileId, loci: Loci) -> Response:
    """Opens a file; returns the names of those that were closed for it."""
    limits = await _limits(loci, agent_id)
    request = folder_service_pb2.OpenFileRequest(agent_id=agent_id, file_id=file_id, limits=limits)
    return json_response(list((await loci.peers.call(loci.peers.folders.OpenFile, request)).closed_names))


@_files.patch("/{file_id}/close")
@returns(MESSAGE)
async def close_file(agent_id: AgentId, file_id: FileId, loci: Loci) -> Response:
    """Closes a file."""
    await fetch(loci, agent_id)
    request = folder_service_pb2.CloseFileRequest(agent_id=agent_id, file_id=file_id)
    await loci.peers.call(loci.peers.folders.CloseFile, request)
    return json_response({"message": f"File id={file_id} successfully closed"})


router = APIRouter()
router.include_router(_folders, prefix="/agents/{agent_id}/folders")
router.include_router(_folders, prefix="/agents/{agent_id}/sources", deprecated=True)
router.include_router(_files)


async def _limits(loci: Services, agent_id: str) -> folder_service_pb2.FileLimits:
    agent = await fetch(loci, agent_id)
    most, characters = file_limits(
        agent.context_window_limit,
        agent.max_files_open if agent.HasField("max_files_open") else None,
        agent.per_file_view_window_char_limit,
    )
    return folder_service_pb2.FileLimits(max_files_open=most, per_file_view_chars=characters)


def _file(file: folder_pb2.AgentFile) -> convert.Rest:
    """Returns the reference's FileAgent, as its lists show it: 11 fields."""
    rest = convert.to_rest(file)
    return rest | {"start_line": file.start_line or None, "end_line": file.end_line or None}


def _age(folder: folder_pb2.Folder) -> tuple[int, str]:
    return folder.created_at.ToNanoseconds(), folder.id
