"""Files: protobuf to plain values and back."""

from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.ids import from_public, to_public, uuid7
from services.common.timestamps import timestamp
from services.memory.files.model import File, Incoming, OnDuplicate


def incoming(header: folder_service_pb2.UploadHeader) -> Incoming:
    """Raises InvalidArgument (INVALID_ID)."""
    return Incoming(
        file_id=from_public("file", header.file_id) if header.file_id else uuid7(),
        folder_id=from_public("source", header.folder_id),
        name=header.name,
        media_type=header.media_type,
        on_duplicate=OnDuplicate(header.on_duplicate or OnDuplicate.SUFFIX),
        is_retry=header.is_retry,
        is_text=header.is_text,
    )


def file_message(file: File, content: str | None = None) -> folder_pb2.File:
    """A file on the wire."""
    return folder_pb2.File(
        id=to_public("file", file.id),
        folder_id=to_public("source", file.folder_id),
        name=file.path,
        original_name=file.original_name,
        media_type=file.media_type,
        size=file.size,
        status=int(file.status),  # type: ignore[arg-type] # the numbers are the same
        error=file.error or "",
        total_chunks=file.chunk_count,
        chunks_embedded=file.embedded_count,
        line_count=file.line_count,
        char_count=file.char_count,
        content=content,
        created_at=timestamp(file.created_at),
        updated_at=timestamp(file.updated_at),
        created_by_id=to_public("user", file.created_by_id),
    )
