"""Pages of blocks, versions and passages, with SQLAlchemy: filters and cursors both ways."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, Table, and_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.errors import NotFound
from services.common.paging import Moment, Page, PageOf, cut, moment_token
from services.memory.adapters import rows
from services.memory.adapters.blocks import no_such_block
from services.memory.adapters.schema import (
    agent_archives,
    agent_blocks,
    archives,
    block_history,
    blocks,
    embedding_models,
    passage_vectors,
    passages,
)
from services.memory.lists import BlockList, PassageList, moment_of, version_of
from services.memory.model import Block, BlockVersion, Operation, Passage


class SqlLists:
    """`ports.Lists`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def blocks(self, organization_id: UUID, wanted: BlockList, page: Page) -> PageOf[Block]:
        query = select(blocks).where(blocks.c.organization_id == organization_id, *_block_filters(wanted))
        if wanted.agent_id is not None:
            query = query.join(
                agent_blocks,
                and_(
                    agent_blocks.c.organization_id == blocks.c.organization_id,
                    agent_blocks.c.block_id == blocks.c.id,
                    agent_blocks.c.agent_id == wanted.agent_id,
                ),
            )
        async with self._engine.connect() as connection:
            found = await _page(connection, query, blocks, organization_id, page, "BLOCK")
        return PageOf(tuple(rows.block(row._asdict()) for row in found.items), found.next_token)

    async def versions(self, organization_id: UUID, block_id: UUID, page: Page) -> PageOf[BlockVersion]:
        query = (
            select(block_history)
            .where(block_history.c.organization_id == organization_id, block_history.c.block_id == block_id)
            .order_by(block_history.c.version.desc())
            .limit(page.size + 1)
        )
        if page.token:
            query = query.where(block_history.c.version < version_of(page.token))
        async with self._engine.connect() as connection:
            found = (await connection.execute(query)).all()
        if not found and not page.token:
            raise no_such_block(block_id)
        # The page has no cursors, so it is never taken from its end.
        return cut([_version(row) for row in found], page, lambda version: str(version.version))

    async def passages(self, organization_id: UUID, wanted: PassageList, page: Page) -> PageOf[Passage]:
        query = _passages_of(organization_id, wanted.agent_id)
        if wanted.search:
            query = query.where(passages.c.text.icontains(wanted.search, autoescape=True))
        async with self._engine.connect() as connection:
            found = await _page(connection, query, passages, organization_id, page, "PASSAGE")
        return PageOf(tuple(rows.passage(row._asdict()) for row in found.items), found.next_token)


def _block_filters(wanted: BlockList) -> list[ColumnElement[bool]]:
    filters = []
    if wanted.label is not None:
        filters.append(blocks.c.label == wanted.label)
    for column, part in (
        (blocks.c.label, wanted.label_search),
        (blocks.c.value, wanted.value_search),
        (blocks.c.description, wanted.description_search),
    ):
        if part:
            filters.append(column.icontains(part, autoescape=True))
    if wanted.tags:
        filters.append(blocks.c.tags.contains(list(wanted.tags)))
    if not wanted.show_hidden:
        filters.append(blocks.c.hidden.is_(False))
    if wanted.is_template is not None:
        filters.append(blocks.c.is_template.is_(wanted.is_template))
    return filters


def _passages_of(organization_id: UUID, agent_id: UUID) -> Select[Any]:
    """Passages in the archives of an agent, with the handle of the model whose vector each has."""
    of_agent = select(agent_archives.c.archive_id).where(
        agent_archives.c.organization_id == organization_id, agent_archives.c.agent_id == agent_id
    )
    in_archive = and_(archives.c.organization_id == passages.c.organization_id, archives.c.id == passages.c.archive_id)
    with_vector = and_(
        passage_vectors.c.organization_id == passages.c.organization_id,
        passage_vectors.c.archive_id == passages.c.archive_id,
        passage_vectors.c.passage_id == passages.c.id,
        passage_vectors.c.model_id == archives.c.model_id,
    )
    columns = [column for column in passages.c if column.name != "words"]
    return (
        select(*columns, embedding_models.c.handle)
        .join(archives, in_archive)
        .outerjoin(passage_vectors, with_vector)
        .outerjoin(embedding_models, embedding_models.c.id == passage_vectors.c.model_id)
        .where(passages.c.organization_id == organization_id, passages.c.archive_id.in_(of_agent))
    )


async def _page(
    connection: AsyncConnection,
    query: Select[Any],
    table: Table,
    organization_id: UUID,
    page: Page,
    noun: str,
) -> PageOf[Row[Any]]:
    """The rows of one page in the chosen order."""
    place = tuple_(table.c.created_at, table.c.id)
    start = moment_of(page.token) if page.token else None
    if page.after is not None:
        start = start or await _moment(connection, table, organization_id, page.after, noun)
    if page.before is not None:
        end = start if start and page.backwards else None
        end = end or await _moment(connection, table, organization_id, page.before, noun)
        query = query.where(place < _at(end) if page.ascending else place > _at(end))
    if start is not None and not page.backwards:
        query = query.where(place > _at(start) if page.ascending else place < _at(start))
    if page.scan_ascending:
        query = query.order_by(table.c.created_at, table.c.id)
    else:
        query = query.order_by(table.c.created_at.desc(), table.c.id.desc())
    found = (await connection.execute(query.limit(page.size + 1))).all()
    return cut(found, page, lambda row: moment_token(Moment(row.created_at, row.id)))


def _at(moment: Moment) -> ColumnElement[Any]:
    return tuple_(*moment)


async def _moment(
    connection: AsyncConnection, table: Table, organization_id: UUID, object_id: UUID, noun: str
) -> Moment:
    query = select(table.c.created_at, table.c.id).where(
        table.c.organization_id == organization_id, table.c.id == object_id
    )
    row = (await connection.execute(query.limit(1))).first()
    if row is None:
        public = f"{noun.lower()}-{object_id}"
        raise NotFound(f"The cursor {public} was not found", reason=f"{noun}_NOT_FOUND")
    return Moment(row.created_at, row.id)


def _version(row: Row[Any]) -> BlockVersion:
    return BlockVersion(
        block_id=row.block_id,
        version=row.version,
        value=row.value,
        operation=Operation(row.operation),
        actor_id=row.actor_id,
        agent_id=row.agent_id,
        run_id=row.run_id,
        step_id=row.step_id,
        call_key=row.call_key,
        created_at=row.created_at,
    )
