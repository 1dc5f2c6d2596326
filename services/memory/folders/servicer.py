"""loci.memory.v1.FolderService."""

from collections.abc import Callable
from typing import Any

from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from services.common.context import current
from services.common.core.storable import storable_name
from services.common.ids import from_public, uuid7
from services.common.page_requests import page_by_id
from services.memory import wire
from services.memory.agent_files.servicer import AgentFileServicer
from services.memory.core.ports.files import AgentFileStore, FileStore, FolderStore, IngestionStore
from services.memory.core.ports.search import Embedder
from services.memory.files.service import UploadService
from services.memory.files.servicer import FileServicer
from services.memory.folders.convert import folder_message
from services.memory.folders.model import FolderDraft, FolderSettings, validate_changes, validate_folder

_PER_PAGE = 50
_CHECK_SECONDS = 10.0

_DRAFTS = wire.settings(FolderDraft, folder_pb2.Folder, "FOLDER_INVALID", leave=("id",))
_SETTINGS = wire.settings(FolderSettings, folder_pb2.Folder, "FOLDER_INVALID")


class FolderServicer(AgentFileServicer, FileServicer):
    """loci.memory.v1.FolderService."""

    def __init__(
        self,
        folders: FolderStore,
        files: FileStore,
        agent_files: AgentFileStore,
        ingestion: IngestionStore,
        uploads: UploadService,
        embedder: Embedder,
        wake: Callable[[], None],
    ) -> None:
        """Takes `wake`, which says that there is a job to do."""
        AgentFileServicer.__init__(self, agent_files)
        FileServicer.__init__(self, files, folders, ingestion, uploads, wake)
        self._embedder = embedder

    async def CreateFolder(
        self, request: folder_pb.CreateFolderRequest, context: Any
    ) -> folder_pb.CreateFolderResponse:
        caller = current()
        draft = validate_folder(folder_draft(request.folder))
        if draft.embedding:
            await self._embedder.check(draft.embedding, _CHECK_SECONDS)
        folder = await self._folders.create(caller.organization_id, caller.user_id, draft)
        return folder_pb.CreateFolderResponse(folder=folder_message(folder))

    async def GetFolder(self, request: folder_pb.GetFolderRequest, context: Any) -> folder_pb.GetFolderResponse:
        folder = await self._folders.get(current().organization_id, from_public("source", request.folder_id))
        return folder_pb.GetFolderResponse(folder=folder_message(folder))

    async def ListFolders(self, request: folder_pb.ListFoldersRequest, context: Any) -> folder_pb.ListFoldersResponse:
        page = page_by_id(request.page, "source", _PER_PAGE, ascending=True)
        name = storable_name(request.name) if request.HasField("name") else None
        name_search = storable_name(request.name_search)
        result = await self._folders.list(current().organization_id, page, name=name, name_search=name_search)
        return folder_pb.ListFoldersResponse(
            folders=[folder_message(folder) for folder in result.items], next_page_token=result.next_token
        )

    async def CountFolders(
        self, request: folder_pb.CountFoldersRequest, context: Any
    ) -> folder_pb.CountFoldersResponse:
        folders, files, size = await self._folders.count(current().organization_id)
        return folder_pb.CountFoldersResponse(folders=folders, files=files, total_size=size)

    async def UpdateFolder(
        self, request: folder_pb.UpdateFolderRequest, context: Any
    ) -> folder_pb.UpdateFolderResponse:
        caller, folder_id = current(), from_public("source", request.folder_id)
        changes = validate_changes(wire.changes(_SETTINGS, request.folder, request.update_mask.paths))
        folder = await self._folders.update(caller.organization_id, caller.user_id, folder_id, changes)
        return folder_pb.UpdateFolderResponse(folder=folder_message(folder))

    async def DeleteFolder(
        self, request: folder_pb.DeleteFolderRequest, context: Any
    ) -> folder_pb.DeleteFolderResponse:
        await self._folders.delete(current().organization_id, from_public("source", request.folder_id))
        self._wake()
        return folder_pb.DeleteFolderResponse()


def folder_draft(folder: folder_pb2.Folder) -> FolderDraft:
    """Returns a folder to create. Raises InvalidArgument (INVALID_ID), Refused (FOLDER_INVALID)."""
    return _DRAFTS.create(folder, id=from_public("source", folder.id) if folder.id else uuid7())
