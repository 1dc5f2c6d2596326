"""Takes files in: bytes are kept as they come, and become a file once they are all there."""

import hashlib
from collections.abc import AsyncIterator
from uuid import UUID

from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from services.common.ids import uuid7
from services.memory.core.file_text.kinds import PLAIN_TEXT, FileFormat, kind_of, sniff_kind
from services.memory.core.file_text.names import validate_file_name
from services.memory.core.ports.files import FileStore, UploadStore
from services.memory.files.model import File, OnDuplicate, Upload, UploadRequest

# Of one row, and of what an upload holds in memory.
PART_BYTES = 1024 * 1024
MEBIBYTE = 1024 * 1024


class UploadService:
    """Takes uploads of at most `most_bytes`."""

    def __init__(self, store: UploadStore, files: FileStore, *, most_bytes: int) -> None:
        self._store = store
        self._files = files
        self._most_bytes = most_bytes

    async def take(
        self, organization_id: UUID, user_id: UUID, upload_request: UploadRequest, data: AsyncIterator[bytes]
    ) -> tuple[File, bool]:
        """Returns the file, and whether it is new. Nothing stays of an upload that fails.

        Raises Refused (FILE_INVALID, FILE_TYPE_UNSUPPORTED), InvalidArgument (FILE_TOO_LARGE), NotFound
        (FOLDER_NOT_FOUND), AlreadyExists (FILE_NAME_TAKEN), Aborted.
        """
        name = validate_file_name(upload_request.name)
        existing = await self._existing(organization_id, upload_request, name)
        if existing is not None:
            return existing, False
        upload_id, is_new = uuid7(), False
        await self._store.begin(organization_id, upload_id)
        try:
            upload = await self._store_parts(organization_id, upload_id, upload_request, name, data)
            file, is_new = await self._store.finish(organization_id, user_id, upload, upload_request.on_duplicate)
        finally:
            if not is_new:
                await self._store.drop(organization_id, upload_id)
        return file, is_new

    async def _existing(self, organization_id: UUID, upload_request: UploadRequest, name: str) -> File | None:
        """Returns the file that is there instead, before a byte was read. The end of the upload looks again."""
        try:
            return await self._files.get(organization_id, upload_request.file_id, upload_request.folder_id)
        except NotFound:
            named = await self._files.find(organization_id, upload_request.folder_id, name)
        if upload_request.is_retry:
            return None  # the bytes have a say
        if named is not None and upload_request.on_duplicate is OnDuplicate.ERROR:
            raise name_taken(name)
        return named if upload_request.on_duplicate is OnDuplicate.SKIP else None

    async def _store_parts(
        self,
        organization_id: UUID,
        upload_id: UUID,
        upload_request: UploadRequest,
        name: str,
        data: AsyncIterator[bytes],
    ) -> Upload:
        media_type, size, parts, digest = "", 0, 0, hashlib.sha256()
        async for part in _parts(data):
            if not parts:
                media_type = _media_type(name, upload_request, part)
            size += len(part)
            if size > self._most_bytes:
                raise self._too_large(name)
            digest.update(part)
            await self._store.add(organization_id, upload_id, parts, part)
            parts += 1
        return Upload(
            id=upload_request.file_id,
            upload_id=upload_id,
            folder_id=upload_request.folder_id,
            name=name,
            media_type=media_type or _media_type(name, upload_request, b""),
            size=size,
            sha256=digest.digest(),
            is_retry=upload_request.is_retry,
        )

    def _too_large(self, name: str) -> InvalidArgument:
        return InvalidArgument(
            f"{name!r} is larger than {self._most_bytes // MEBIBYTE} MB, the most that a file may have",
            reason="FILE_TOO_LARGE",
            metadata={"limit": str(self._most_bytes)},
        )


def name_taken(name: str) -> AlreadyExists:
    """Returns the error for an upload that shall not be stored beside a file of its name."""
    return AlreadyExists(f"a file named {name!r} already exists in the folder", reason="FILE_NAME_TAKEN")


def _media_type(name: str, upload_request: UploadRequest, head: bytes) -> str:
    """Raises Refused (FILE_TYPE_UNSUPPORTED)."""
    declared = upload_request.media_type
    kind = kind_of(name, declared)
    if upload_request.is_text:
        return kind.media_type if kind is not None and kind.format is FileFormat.TEXT else PLAIN_TEXT
    if kind is not None:
        return kind.media_type
    sniffed = sniff_kind(name, head, declared)
    own = declared.partition(";")[0].strip().lower()
    return own if own.startswith("text/") else sniffed.media_type


async def _parts(data: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Returns the same bytes in parts of PART_BYTES, the last one shorter."""
    buffer = bytearray()
    async for piece in data:
        buffer += piece
        while len(buffer) >= PART_BYTES:
            yield bytes(buffer[:PART_BYTES])
            del buffer[:PART_BYTES]
    if buffer:
        yield bytes(buffer)
