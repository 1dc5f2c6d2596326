"""Files as agents see them: plain values to protobuf and back."""

from uuid import UUID

from loci.memory.v1 import agent_memory_service_pb2, folder_pb2, folder_service_pb2
from services.common.ids import to_public
from services.common.timestamps import timestamp
from services.memory.agent_files.model import AgentFile, Directory, FileLimits
from services.memory.core.file_text.views import id_of_agent_file

_USUAL = FileLimits()


def file_limits(message: folder_service_pb2.FileLimits | agent_memory_service_pb2.ApplyToolRequest) -> FileLimits:
    """What an agent may have in view; what is not said is as usual."""
    most_open = message.max_files_open if message.HasField("max_files_open") else _USUAL.most_open
    return FileLimits(max(most_open, 0), max(message.per_file_view_chars, 0) or _USUAL.view_chars)


def agent_file_message(agent_id: UUID, file: AgentFile) -> folder_pb2.AgentFile:
    """A file as an agent sees it, on the wire."""
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
        message.start_line, message.end_line = file.view.first_line, file.view.last_line
        message.visible_content = file.view.text
    return message


def directory_message(directory: Directory) -> folder_pb2.Directory:
    """A folder as the prompt shows it, on the wire."""
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
