"""Folders of agents and which of their files they have open, on Postgres."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.refusals import Refused
from services.common.errors import FailedPrecondition, NotFound
from services.memory.agent_files.model import FileLimits, FileRange, Opening
from services.memory.agent_files.store.opening import open_files
from services.memory.agent_files.store.reads import AgentFileReads, views
from services.memory.agent_tools.model import CallRecord
from services.memory.agent_tools.store import keep_record
from services.memory.core.file_text.views import OpenFile, files_to_close
from services.memory.folders.model import Folder
from services.memory.folders.store import FOLDER_COLUMNS, FOLDER_JOIN, folder_of_row, no_such_folder

# Whether a file was parsed; see File.has_text.
HAS_TEXT = "(f.status IN (3, 4) OR f.line_count > 0)"

_ATTACH = """
INSERT INTO memory.agent_folders (organization_id, agent_id, folder_id) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING RETURNING folder_id
"""
# New files are opened within them.
_LIMITS = """
UPDATE memory.agent_folders SET most_open = $3, view_chars = $4
WHERE organization_id = $1 AND agent_id = $2 AND (most_open, view_chars) <> ($3, $4)
"""
_DETACH = "DELETE FROM memory.agent_folders WHERE organization_id = $1 AND agent_id = $2 AND folder_id = $3 RETURNING 1"
_FORGET_FILES = """
DELETE FROM memory.agent_files a USING memory.files f
WHERE a.organization_id = $1 AND a.agent_id = $2 AND f.organization_id = $1 AND f.id = a.file_id AND f.folder_id = $3
"""
_FOLDER = "SELECT 1 FROM memory.folders WHERE organization_id = $1 AND id = $2"
_LEFT = "SELECT count(*) FROM memory.agent_folders WHERE organization_id = $1 AND agent_id = $2"
# Two who open files of one agent at once shall not open too many.
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text || $2::uuid::text, 0))"
_FOLDERS = f"""
SELECT m.agent_id, {FOLDER_COLUMNS}
FROM memory.agent_folders m
JOIN memory.folders d ON d.organization_id = m.organization_id AND d.id = m.folder_id {FOLDER_JOIN}
WHERE m.organization_id = $1 AND m.agent_id = ANY($2::uuid[])
ORDER BY m.attached_at, m.folder_id
"""
_AGENTS = """
SELECT agent_id FROM memory.agent_folders WHERE organization_id = $1 AND folder_id = $2 ORDER BY attached_at, agent_id
"""
# Whoever deletes a file waits until it is open.
_OLDEST = f"""
SELECT f.id FROM memory.files f WHERE f.organization_id = $1 AND f.folder_id = $2 AND {HAS_TEXT}
ORDER BY f.created_at, f.id LIMIT $3 FOR KEY SHARE
"""
_OPEN_NOW = """
SELECT a.file_id, d.name || '/' || f.name AS path, a.accessed_at
FROM memory.agent_files a
JOIN memory.files f ON f.organization_id = a.organization_id AND f.id = a.file_id
JOIN memory.folders d ON d.organization_id = f.organization_id AND d.id = f.folder_id
WHERE a.organization_id = $1 AND a.agent_id = $2 AND a.is_open
ORDER BY a.accessed_at, a.file_id
"""
_READY = f"""
SELECT f.id, {HAS_TEXT} AS has_text, d.name || '/' || f.name AS path
FROM memory.agent_folders m
JOIN memory.folders d ON d.organization_id = m.organization_id AND d.id = m.folder_id
JOIN memory.files f ON f.organization_id = m.organization_id AND f.folder_id = m.folder_id
WHERE m.organization_id = $1 AND m.agent_id = $2 AND f.id = ANY($3::uuid[])
FOR KEY SHARE OF f
"""
# Those opened together count as opened one after the other.
_OPEN = """
INSERT INTO memory.agent_files (
    organization_id, agent_id, file_id, is_open, first_line, last_line, char_limit, accessed_at)
SELECT $1, $2, w.id, true, w.first_line, w.last_line, $6, clock_timestamp() + w.place * interval '1 microsecond'
FROM unnest($3::uuid[], $4::integer[], $5::integer[]) WITH ORDINALITY AS w (id, first_line, last_line, place)
ON CONFLICT (organization_id, agent_id, file_id) DO UPDATE SET
    is_open = true, first_line = excluded.first_line, last_line = excluded.last_line,
    char_limit = excluded.char_limit, accessed_at = excluded.accessed_at
"""
_CLOSE = """
UPDATE memory.agent_files SET is_open = false
WHERE organization_id = $1 AND agent_id = $2 AND file_id = ANY($3::uuid[]) AND is_open
"""


class PostgresAgentFiles(AgentFileReads):
    """`AgentFileStore`."""

    async def attach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID, limits: FileLimits) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id)
            try:
                attached = await connection.fetchval(_ATTACH, organization_id, agent_id, folder_id)
            except asyncpg.ForeignKeyViolationError:
                raise no_such_folder(folder_id) from None
            await _keep_limits(connection, organization_id, agent_id, limits)
            if attached is None:
                return
            rows = await connection.fetch(_OLDEST, organization_id, folder_id, limits.most_open)
            await open_files(connection, organization_id, folder_id, [row["id"] for row in rows], agent_id)

    async def detach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID) -> int:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id)
            if await connection.fetchval(_DETACH, organization_id, agent_id, folder_id) is None:
                await _check_folder(connection, organization_id, folder_id)
            await connection.execute(_FORGET_FILES, organization_id, agent_id, folder_id)
            left: int = await connection.fetchval(_LEFT, organization_id, agent_id)
            return left

    async def folders(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Folder]]:
        folders = defaultdict(list)
        for row in await self._pool.fetch(_FOLDERS, organization_id, agent_ids):
            folders[row["agent_id"]].append(folder_of_row(row))
        return folders

    async def agents_of(self, organization_id: UUID, folder_id: UUID) -> Sequence[UUID]:
        async with self._pool.acquire() as connection:
            rows = await connection.fetch(_AGENTS, organization_id, folder_id)
            if not rows:
                await _check_folder(connection, organization_id, folder_id)
        return [row["agent_id"] for row in rows]

    async def open(
        self,
        organization_id: UUID,
        agent_id: UUID,
        ranges: Sequence[FileRange],
        limits: FileLimits,
        *,
        close_others: bool = False,
        record: Callable[[Opening], CallRecord] | None = None,
    ) -> Opening:
        _check_number(ranges, limits)
        ids = [one.file_id for one in ranges]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id)
            paths = await _ready(connection, organization_id, agent_id, ids)
            await _keep_limits(connection, organization_id, agent_id, limits)
            opened = [_open_file(row) for row in await connection.fetch(_OPEN_NOW, organization_id, agent_id)]
            closed = files_to_close(opened, ids, 0 if close_others else limits.most_open)
            await connection.execute(_CLOSE, organization_id, agent_id, [one.file_id for one in closed])
            await connection.execute(_OPEN, organization_id, agent_id, *_windows(ranges), limits.view_chars)
            visible = await views(connection, organization_id, agent_id, ids)
            opening = Opening([(paths[each], visible[each]) for each in ids], [one.path for one in closed])
            if record is not None:
                await keep_record(connection, organization_id, record(opening))
        return opening

    async def close(self, organization_id: UUID, agent_id: UUID, file_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id)
            if not await connection.fetch(_READY, organization_id, agent_id, [file_id]):
                raise no_such_file(agent_id, file_id)
            await connection.execute(_CLOSE, organization_id, agent_id, [file_id])

    async def close_all(self, organization_id: UUID, agent_id: UUID) -> Sequence[str]:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_LOCK, organization_id, agent_id)
            opened = await connection.fetch(_OPEN_NOW, organization_id, agent_id)
            await connection.execute(_CLOSE, organization_id, agent_id, [row["file_id"] for row in opened])
        return [row["path"] for row in opened]


def no_such_file(agent_id: UUID, file_id: UUID) -> NotFound:
    """Returns the error for a file that is in none of an agent's folders."""
    return NotFound(f"File file-{file_id} not found in the folders of agent-{agent_id}", reason="FILE_NOT_FOUND")


async def _keep_limits(connection: Any, organization_id: UUID, agent_id: UUID, limits: FileLimits) -> None:
    await connection.execute(_LIMITS, organization_id, agent_id, limits.most_open, limits.view_chars)


def _check_number(ranges: Sequence[FileRange], limits: FileLimits) -> None:
    if len(ranges) > limits.most_open:
        sentence = f"At most {limits.most_open} files may be open at once, and {len(ranges)} were to be opened."
        raise Refused("FILE_INVALID", sentence)


async def _check_folder(connection: Any, organization_id: UUID, folder_id: UUID) -> None:
    if await connection.fetchval(_FOLDER, organization_id, folder_id) is None:
        raise no_such_folder(folder_id)


async def _ready(
    connection: Any, organization_id: UUID, agent_id: UUID, file_ids: Sequence[UUID]
) -> Mapping[UUID, str]:
    """Returns paths of files that can be opened."""
    rows = {row["id"]: row for row in await connection.fetch(_READY, organization_id, agent_id, file_ids)}
    for file_id in file_ids:
        if file_id not in rows:
            raise no_such_file(agent_id, file_id)
        if not rows[file_id]["has_text"]:
            sentence = f"{rows[file_id]['path']} is still being read, or could not be read"
            raise FailedPrecondition(sentence, reason="FILE_NOT_READY")
    return {file_id: row["path"] for file_id, row in rows.items()}


def _windows(ranges: Sequence[FileRange]) -> tuple[list[UUID], list[int], list[int | None]]:
    return (
        [one.file_id for one in ranges],
        [one.first_line for one in ranges],
        [one.last_line for one in ranges],
    )


def _open_file(row: Any) -> OpenFile:
    return OpenFile(row["file_id"], row["path"], row["accessed_at"].timestamp())
