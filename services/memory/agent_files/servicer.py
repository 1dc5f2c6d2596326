"""The half of loci.memory.v1.FolderService that is about agents."""

from typing import Any
from uuid import UUID

from loci.common.v1 import page_pb2
from loci.memory.v1 import agent_memory_service_pb2, folder_pb2, folder_service_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from loci.memory.v1 import folder_service_pb2_grpc as folder_grpc
from services.common.context import current
from services.common.errors import InvalidArgument, cursor_not_found
from services.common.ids import from_public, to_public
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp
from services.memory import wire
from services.memory.agent_files.model import AgentFile, Directory, FileLimits, FileRange
from services.memory.core.file_text.views import id_of_agent_file
from services.memory.core.ports.files import AgentFileStore
from services.memory.folders.convert import folder_message

_FILES_PER_PAGE = 100
_MOST_AGENTS = 1_000


class AgentFileServicer(folder_grpc.FolderServiceServicer):
    """Attachment of folders, and what agents have open."""

    def __init__(self, agent_files: AgentFileStore) -> None:
        self._agent_files = agent_files

    async def AttachFolder(
        self, request: folder_pb.AttachFolderRequest, context: Any
    ) -> folder_pb.AttachFolderResponse:
        agent_id, folder_id = wire.agent_id(request.agent_id), from_public("source", request.folder_id)
        limits = file_limits(request.limits)
        await self._agent_files.attach(current().organization_id, agent_id, folder_id, limits)
        return folder_pb.AttachFolderResponse()

    async def DetachFolder(
        self, request: folder_pb.DetachFolderRequest, context: Any
    ) -> folder_pb.DetachFolderResponse:
        agent_id, folder_id = wire.agent_id(request.agent_id), from_public("source", request.folder_id)
        left = await self._agent_files.detach(current().organization_id, agent_id, folder_id)
        return folder_pb.DetachFolderResponse(folders_left=left)

    async def BatchGetAgentFolders(
        self, request: folder_pb.BatchGetAgentFoldersRequest, context: Any
    ) -> folder_pb.BatchGetAgentFoldersResponse:
        if not 1 <= len(request.agent_ids) <= _MOST_AGENTS:
            sentence = f"ask for 1 to {_MOST_AGENTS} agents, not {len(request.agent_ids)}"
            raise InvalidArgument(sentence, reason="PAGE_SIZE_INVALID")
        agent_ids = [wire.agent_id(text) for text in request.agent_ids]
        folders = await self._agent_files.folders(current().organization_id, agent_ids)
        return folder_pb.BatchGetAgentFoldersResponse(
            agents=[
                folder_pb.AgentFolders(
                    agent_id=to_public("agent", agent_id),
                    folders=map(folder_message, folders.get(agent_id, ())),
                )
                for agent_id in agent_ids
            ]
        )

    async def ListFolderAgents(
        self, request: folder_pb.ListFolderAgentsRequest, context: Any
    ) -> folder_pb.ListFolderAgentsResponse:
        folder_id = from_public("source", request.folder_id)
        agent_ids = await self._agent_files.agents_of(current().organization_id, folder_id)
        return folder_pb.ListFolderAgentsResponse(agent_ids=[to_public("agent", each) for each in agent_ids])

    async def ListAgentFiles(
        self, request: folder_pb.ListAgentFilesRequest, context: Any
    ) -> folder_pb.ListAgentFilesResponse:
        agent_id = wire.agent_id(request.agent_id)
        is_open = request.is_open if request.HasField("is_open") else None
        await self._with_file_ids(agent_id, request.page)
        page = page_by_id(request.page, "file", _FILES_PER_PAGE, ascending=True)
        result = await self._agent_files.list(current().organization_id, agent_id, page, is_open=is_open)
        return folder_pb.ListAgentFilesResponse(
            files=[agent_file_message(agent_id, file) for file in result.items],
            next_page_token=result.next_token,
        )

    async def _with_file_ids(self, agent_id: UUID, page: page_pb2.PageRequest) -> None:
        """Puts the files' own ids in the place of cursors that are ids of files as the agent sees them."""
        for name in ("after", "before"):
            if (cursor := getattr(page, name)).startswith("file_agent-"):
                agent_file_id = from_public("file_agent", cursor)
                files = await self._agent_files.files(current().organization_id, agent_id)
                file_id = next(
                    (file.id for file in files if id_of_agent_file(agent_id, file.id) == agent_file_id), None
                )
                if file_id is None:
                    raise cursor_not_found(name, cursor)
                setattr(page, name, to_public("file", file_id))

    async def OpenFile(self, request: folder_pb.OpenFileRequest, context: Any) -> folder_pb.OpenFileResponse:
        agent_id, file_id = wire.agent_id(request.agent_id), from_public("file", request.file_id)
        limits = file_limits(request.limits)
        opening = await self._agent_files.open(current().organization_id, agent_id, [FileRange(file_id)], limits)
        return folder_pb.OpenFileResponse(closed_names=opening.closed)

    async def CloseFile(self, request: folder_pb.CloseFileRequest, context: Any) -> folder_pb.CloseFileResponse:
        agent_id, file_id = wire.agent_id(request.agent_id), from_public("file", request.file_id)
        await self._agent_files.close(current().organization_id, agent_id, file_id)
        return folder_pb.CloseFileResponse()

    async def CloseAllFiles(
        self, request: folder_pb.CloseAllFilesRequest, context: Any
    ) -> folder_pb.CloseAllFilesResponse:
        closed = await self._agent_files.close_all(current().organization_id, wire.agent_id(request.agent_id))
        return folder_pb.CloseAllFilesResponse(closed_names=closed)


_USUAL = FileLimits()


def file_limits(message: folder_service_pb2.FileLimits | agent_memory_service_pb2.ApplyToolRequest) -> FileLimits:
    """Returns the limits of an agent's view; defaults stand for what is not set."""
    most_open = message.max_files_open if message.HasField("max_files_open") else _USUAL.most_open
    return FileLimits(max(most_open, 0), max(message.per_file_view_chars, 0) or _USUAL.view_chars)


def agent_file_message(agent_id: UUID, file: AgentFile) -> folder_pb2.AgentFile:
    """Returns a file as an agent sees it, on the wire."""
    message = folder_pb2.AgentFile(
        id=to_public("file_agent", id_of_agent_file(agent_id, file.file_id)),
        file_id=to_public("file", file.file_id),
        file_name=file.path,
        folder_id=to_public("source", file.folder_id),
        folder_name=file.folder_name,
        is_open=file.view is not None,
        last_accessed_at=None if file.accessed_at is None else timestamp(file.accessed_at),
    )
    if file.view is not None:
        message.visible_content = file.view.text
        if not file.view.is_whole:
            message.start_line, message.end_line = file.view.first_line, file.view.last_line
    return message


def directory_message(directory: Directory) -> folder_pb2.Directory:
    """Returns a folder as the prompt shows it, on the wire."""
    return folder_pb2.Directory(
        name=directory.name,
        description=directory.description,
        instructions=directory.instructions,
        files=[
            folder_pb2.DirectoryFile(
                file_id=to_public("file", file.file_id),
                name=file.name,
                status=file.status,  # type: ignore[arg-type] # the numbers are the same
                is_open=file.is_open,
                visible_content=file.visible_content,
            )
            for file in directory.files
        ],
        file_count=directory.file_count,
    )
