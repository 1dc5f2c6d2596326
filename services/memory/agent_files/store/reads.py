"""Files of agents, read: lists, names, texts, and where passages stand in them."""

from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.common.core.paging import Page, PageOf
from services.common.keyset import Keyset
from services.memory.agent_files.model import AgentFile, Piece
from services.memory.agent_files.store.views import CHAR_LIMIT, PAGES, PAGES_AS_JSON, view_of_row
from services.memory.agent_files.tables import agent_files
from services.memory.core.file_text.lookup import KnownFile, bare
from services.memory.core.file_text.views import View
from services.memory.files.model import TextPage
from services.memory.files.tables import files
from services.memory.folders.tables import agent_folders, folders

# Characters that are held at once of texts that are looked through; pages of one long file.
_HELD_CHARS = 1_000_000
_HELD_PAGES = 64

_FILES = """
SELECT f.id, d.name AS folder_name, f.name, f.status IN (3, 4) OR f.line_count > 0 AS has_text, f.line_count,
    f.char_count
FROM memory.agent_folders m
JOIN memory.folders d ON d.organization_id = m.organization_id AND d.id = m.folder_id
JOIN memory.files f ON f.organization_id = m.organization_id AND f.folder_id = m.folder_id
WHERE m.organization_id = $1 AND m.agent_id = $2"""
_ALL = f"{_FILES} ORDER BY d.name, f.name"
_NAMED = f"{_FILES} AND f.name = ANY($3::text[]) ORDER BY d.name, f.name"

_PAGES = """
SELECT file_id, page, first_line, last_line, text FROM memory.file_pages
WHERE organization_id = $1 AND file_id = ANY($2::uuid[]) ORDER BY file_id, page
"""
_MORE_PAGES = """
SELECT file_id, page, first_line, last_line, text FROM memory.file_pages
WHERE organization_id = $1 AND file_id = $2 AND page > $3 ORDER BY page LIMIT $4
"""
_PIECES = """
SELECT p.id, d.name || '/' || f.name AS path, p.first_line, p.last_line
FROM unnest($2::uuid[], $3::uuid[]) AS wanted (archive_id, id)
JOIN memory.passages p ON p.organization_id = $1 AND p.archive_id = wanted.archive_id AND p.id = wanted.id
JOIN memory.files f ON f.organization_id = $1 AND f.id = p.file_id
JOIN memory.folders d ON d.organization_id = $1 AND d.id = f.folder_id
"""

_VIEWS = f"""
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT a.agent_id, f.id, f.line_count, a.first_line, a.last_line, {CHAR_LIMIT}
    FROM memory.agent_files a
    JOIN memory.files f ON f.organization_id = a.organization_id AND f.id = a.file_id
    WHERE a.organization_id = $1 AND a.agent_id = $2 AND a.file_id = ANY($3::uuid[]) AND a.is_open
), {PAGES}
SELECT o.*, {PAGES_AS_JSON} AS pages FROM opened o
"""
# Files of each agent at most; where there are more, the open ones are among them.
_MOST_FILES = 1_000
_OF_MANY = f"""
WITH RECURSIVE opened AS MATERIALIZED (
    SELECT a.agent_id, f.id, f.line_count, a.first_line, a.last_line, {CHAR_LIMIT}
    FROM memory.agent_files a
    JOIN memory.files f ON f.organization_id = a.organization_id AND f.id = a.file_id
    WHERE a.organization_id = $1 AND a.agent_id = ANY($2::uuid[]) AND a.is_open
), {PAGES}
SELECT n.*, o.first_line, o.last_line, o.char_limit, o.line_count, {PAGES_AS_JSON} AS pages
FROM (
    SELECT m.agent_id, f.id, f.name, f.folder_id, f.created_at, d.name AS folder_name, a.accessed_at,
        coalesce(a.is_open, false) AS is_open,
        row_number() OVER (PARTITION BY m.agent_id ORDER BY a.is_open IS TRUE DESC, f.created_at, f.id) AS place
    FROM memory.agent_folders m
    JOIN memory.folders d ON d.organization_id = m.organization_id AND d.id = m.folder_id
    JOIN memory.files f ON f.organization_id = m.organization_id AND f.folder_id = m.folder_id
    LEFT JOIN memory.agent_files a
        ON a.organization_id = m.organization_id AND a.agent_id = m.agent_id AND a.file_id = f.id
    WHERE m.organization_id = $1 AND m.agent_id = ANY($2::uuid[])) n
LEFT JOIN opened o ON o.agent_id = n.agent_id AND o.id = n.id
WHERE n.place <= {_MOST_FILES}
ORDER BY n.created_at, n.id
"""

_KEYSET = Keyset(files, "file")


class AgentFileReads:
    """The half of `AgentFileStore` that changes nothing."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._engine = engine

    async def list(
        self, organization_id: UUID, agent_id: UUID, page: Page, *, is_open: bool | None
    ) -> PageOf[AgentFile]:
        query = _of_agent(organization_id, agent_id)
        if is_open is not None:
            query = query.where(func.coalesce(agent_files.c.is_open, False).is_(is_open))
        async with self._engine.connect() as connection:
            result = await _KEYSET.page(connection, query, page, organization_id)
        opened = [row.id for row in result.items if row.is_open]
        visible = await views(self._pool, organization_id, agent_id, opened) if opened else {}
        items = (_agent_file(row._mapping, visible.get(row.id)) for row in result.items)
        return PageOf(tuple(items), result.next_token)

    async def of_many(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[AgentFile]]:
        files = defaultdict(list)
        for row in await self._pool.fetch(_OF_MANY, organization_id, agent_ids):
            view = view_of_row(row, row["pages"]) if row["is_open"] else None
            files[row["agent_id"]].append(_agent_file(row, view))
        return files

    async def named(self, organization_id: UUID, agent_id: UUID, names: Sequence[str]) -> Sequence[KnownFile]:
        candidates = {*names, *map(bare, names)}
        return [KnownFile(*row) for row in await self._pool.fetch(_NAMED, organization_id, agent_id, list(candidates))]

    async def files(self, organization_id: UUID, agent_id: UUID) -> Sequence[KnownFile]:
        return [KnownFile(*row) for row in await self._pool.fetch(_ALL, organization_id, agent_id)]

    async def pages(
        self, organization_id: UUID, files: Sequence[KnownFile]
    ) -> AsyncGenerator[Sequence[tuple[KnownFile, TextPage]]]:
        for group in _groups(files):
            if len(group) > 1 or group[0].char_count <= _HELD_CHARS:
                rows = await self._pool.fetch(_PAGES, organization_id, [file.id for file in group])
                texts: dict[UUID, list[TextPage]] = {}
                for row in rows:
                    texts.setdefault(row["file_id"], []).append(_page(row))
                yield [(file, page) for file in group for page in texts.get(file.id, ())]
                continue
            last = -1
            while rows := await self._pool.fetch(_MORE_PAGES, organization_id, group[0].id, last, _HELD_PAGES):
                yield [(group[0], _page(row)) for row in rows]
                last = rows[-1]["page"]

    async def pieces(self, organization_id: UUID, keys: Sequence[tuple[UUID, UUID]]) -> Mapping[UUID, Piece]:
        folders, passages = [key[0] for key in keys], [key[1] for key in keys]
        rows = await self._pool.fetch(_PIECES, organization_id, folders, passages)
        return {row["id"]: Piece(row["path"], row["first_line"], row["last_line"]) for row in rows}


async def views(executor: Any, organization_id: UUID, agent_id: UUID, file_ids: Sequence[UUID]) -> dict[UUID, View]:
    """Returns the views of those of the files that are open."""
    rows = await executor.fetch(_VIEWS, organization_id, agent_id, file_ids)
    return {row["id"]: view_of_row(row, row["pages"]) for row in rows}


def _of_agent(organization_id: UUID, agent_id: UUID) -> Select[Any]:
    """Returns files of an agent's folders, with what it has open of them."""
    in_folder = and_(folders.c.organization_id == files.c.organization_id, folders.c.id == files.c.folder_id)
    attached = and_(
        agent_folders.c.organization_id == files.c.organization_id,
        agent_folders.c.agent_id == agent_id,
        agent_folders.c.folder_id == files.c.folder_id,
    )
    opened = and_(
        agent_files.c.organization_id == files.c.organization_id,
        agent_files.c.agent_id == agent_id,
        agent_files.c.file_id == files.c.id,
    )
    return (
        select(
            files.c.id,
            files.c.name,
            files.c.folder_id,
            files.c.created_at,
            folders.c.name.label("folder_name"),
            agent_files.c.is_open,
            agent_files.c.accessed_at,
        )
        .join(folders, in_folder)
        .join(agent_folders, attached)
        .outerjoin(agent_files, opened)
        .where(files.c.organization_id == organization_id)
    )


def _agent_file(row: Mapping[Any, Any], view: View | None) -> AgentFile:
    return AgentFile(
        file_id=row["id"],
        path=f"{row['folder_name']}/{row['name']}",
        folder_id=row["folder_id"],
        folder_name=row["folder_name"],
        created_at=row["created_at"],
        accessed_at=row["accessed_at"],
        view=view,
    )


def _groups(files: Sequence[KnownFile]) -> Iterator[list[KnownFile]]:
    """Returns files together for as long as they are short."""
    group: list[KnownFile] = []
    size = 0
    for file in files:
        if group and size + file.char_count > _HELD_CHARS:
            yield group
            group, size = [], 0
        group.append(file)
        size += file.char_count
    if group:
        yield group


def _page(row: asyncpg.Record) -> TextPage:
    return TextPage(page=row["page"], first_line=row["first_line"], last_line=row["last_line"], text=row["text"])
