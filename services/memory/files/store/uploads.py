"""`UploadStore` on Postgres."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg

from services.common.errors import Aborted, AlreadyExists
from services.memory.core.file_text.names import free_name, stem_and_suffix
from services.memory.files.model import FILE_JOB, UPLOAD_JOB, File, OnDuplicate, Upload, subject_of
from services.memory.files.service import name_taken
from services.memory.files.store.files import delete_file
from services.memory.files.store.rows import FILE_COLUMNS, FILE_JOIN, file_of_row
from services.memory.folders.store import no_such_folder
from services.memory.jobs.store import add_job, withdraw_job

# No upload takes so long; what is left of one that broke off with its process is removed then.
_FORGOTTEN_SECONDS = 2 * 3600.0

_ADD = "INSERT INTO memory.file_uploads (organization_id, upload_id, part, data) VALUES ($1, $2, $3, $4)"
_DROP = "DELETE FROM memory.file_uploads WHERE organization_id = $1 AND upload_id = $2"
_PART = "SELECT data FROM memory.file_uploads WHERE organization_id = $1 AND upload_id = $2 AND part = $3"
_FOLDER = "SELECT id FROM memory.folders WHERE organization_id = $1 AND id = $2 FOR KEY SHARE"
_KNOWN = f"SELECT {FILE_COLUMNS} FROM memory.files f {FILE_JOIN} WHERE f.organization_id = $1 AND f.id = $2"
_NAMED = f"""
SELECT {FILE_COLUMNS} FROM memory.files f {FILE_JOIN}
WHERE f.organization_id = $1 AND f.folder_id = $2 AND f.name = $3
"""
_SAME = f"""
SELECT {FILE_COLUMNS} FROM memory.files f {FILE_JOIN}
WHERE f.organization_id = $1 AND f.folder_id = $2 AND f.original_name = $3 AND f.sha256 = $4
    AND f.created_at > now() - interval '10 minutes'
ORDER BY f.created_at DESC LIMIT 1
"""
_TAKEN = "SELECT name FROM memory.files WHERE organization_id = $1 AND folder_id = $2 AND starts_with(name, $3)"
_NEW = """
INSERT INTO memory.files (
    organization_id, id, folder_id, name, original_name, media_type, size, sha256, upload_id, created_by_id)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT DO NOTHING RETURNING id
"""


class PostgresUploads:
    """`UploadStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def begin(self, organization_id: UUID, upload_id: UUID) -> None:
        await add_job(self._pool, organization_id, UPLOAD_JOB, str(upload_id), seconds=_FORGOTTEN_SECONDS)

    async def add(self, organization_id: UUID, upload_id: UUID, part: int, data: bytes) -> None:
        await self._pool.execute(_ADD, organization_id, upload_id, part, data)

    async def finish(
        self, organization_id: UUID, user_id: UUID, upload: Upload, on_duplicate: OnDuplicate
    ) -> tuple[File, bool]:
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_FOLDER, organization_id, upload.folder_id):
                raise no_such_folder(upload.folder_id)
            while True:
                existing = await _existing(connection, organization_id, upload)
                if existing is not None:
                    return existing, False
                name = upload.name
                named = await connection.fetchrow(_NAMED, organization_id, upload.folder_id, name)
                if named is not None:
                    match on_duplicate:
                        case OnDuplicate.SKIP:
                            return file_of_row(named), False
                        case OnDuplicate.ERROR:
                            raise name_taken(name)
                        case OnDuplicate.REPLACE:
                            await delete_file(connection, organization_id, upload.folder_id, named["id"])
                        case OnDuplicate.SUFFIX:
                            name = await _free_name(connection, organization_id, upload)
                if await _insert(connection, organization_id, user_id, upload, name):
                    break
            if not await withdraw_job(connection, organization_id, UPLOAD_JOB, str(upload.upload_id)):
                raise Aborted("the upload took too long and was dropped; repeat it", reason="FILE_INVALID")
            await add_job(connection, organization_id, FILE_JOB, subject_of(upload.folder_id, upload.id))
            return file_of_row(await connection.fetchrow(_KNOWN, organization_id, upload.id)), True

    async def drop(self, organization_id: UUID, upload_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_DROP, organization_id, upload_id)
            await withdraw_job(connection, organization_id, UPLOAD_JOB, str(upload_id))

    async def parts(self, organization_id: UUID, upload_id: UUID) -> AsyncIterator[bytes]:
        part = 0
        while (data := await self._pool.fetchval(_PART, organization_id, upload_id, part)) is not None:
            yield data
            part += 1


async def _existing(connection: Any, organization_id: UUID, upload: Upload) -> File | None:
    """Returns the file that this upload made already. Raises AlreadyExists for an id that is another file's."""
    row = await connection.fetchrow(_KNOWN, organization_id, upload.id)
    if row is None and upload.is_retry:
        row = await connection.fetchrow(_SAME, organization_id, upload.folder_id, upload.name, upload.sha256)
    if row is not None and row["folder_id"] != upload.folder_id:
        raise AlreadyExists(f"the id file-{upload.id} is that of a file in another folder", reason="FILE_NAME_TAKEN")
    return None if row is None else file_of_row(row)


async def _free_name(connection: Any, organization_id: UUID, upload: Upload) -> str:
    stem, _ = stem_and_suffix(upload.name)
    rows = await connection.fetch(_TAKEN, organization_id, upload.folder_id, stem[:200])
    return free_name(upload.name, {row["name"] for row in rows})


async def _insert(connection: Any, organization_id: UUID, user_id: UUID, upload: Upload, name: str) -> bool:
    """Returns False where another upload was faster to take this name, or this id."""
    values = (name, upload.name, upload.media_type, upload.size, upload.sha256, upload.upload_id, user_id)
    return await connection.fetchval(_NEW, organization_id, upload.id, upload.folder_id, *values) is not None
