"""Folders and uploads of a test."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from services.memory.files.service import PART_BYTES
from tests.integration.memory.harness import EMBEDDING, Memory


async def new_folder(memory: Memory, name: str, *, embedding: str = EMBEDDING) -> str:
    """Its id."""
    draft = folder_pb2.Folder(name=name, embedding=embedding)
    created = await memory.folders.CreateFolder(folder_pb.CreateFolderRequest(folder=draft))
    return created.folder.id


async def upload(
    memory: Memory,
    folder_id: str,
    name: str,
    data: bytes,
    *,
    media_type: str = "",
    file_id: str = "",
    on_duplicate: folder_pb.OnDuplicate.ValueType = folder_pb.ON_DUPLICATE_UNSPECIFIED,
    is_retry: bool = False,
    is_text: bool = False,
) -> folder_pb2.File:
    """The file as it is stored."""
    header = folder_pb.UploadHeader(
        file_id=file_id,
        folder_id=folder_id,
        name=name,
        media_type=media_type,
        on_duplicate=on_duplicate,
        is_retry=is_retry,
        is_text=is_text,
    )

    def parts() -> Iterator[folder_pb.UploadFileRequest]:
        yield folder_pb.UploadFileRequest(header=header)
        for start in range(0, len(data), PART_BYTES):
            yield folder_pb.UploadFileRequest(data=data[start : start + PART_BYTES])

    return (await memory.folders.UploadFile(parts())).file


async def read(memory: Memory, file: folder_pb2.File) -> folder_pb2.File:
    """A file as it is now, with its text."""
    request = folder_pb.GetFileRequest(folder_id=file.folder_id, file_id=file.id, include_content=True)
    return (await memory.folders.GetFile(request)).file


def uuid_of(public: str) -> UUID:
    """Of `prefix-<uuid>`."""
    return UUID(public.partition("-")[2])
