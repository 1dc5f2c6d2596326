"""Pages of blocks and versions, with SQLAlchemy: filters and cursors both ways."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import keyset
from services.common.core.paging import Page, PageBy, PageOf
from services.common.keyset import Keyset
from services.memory.blocks.model import Block, BlockList, BlockVersion, version_bounds
from services.memory.blocks.store.blocks import no_such_block
from services.memory.blocks.store.history import version_of_row
from services.memory.blocks.store.rows import block_of_row
from services.memory.blocks.tables import agent_blocks, block_history, block_identities, blocks
from services.memory.sql.columns import by_key
from services.memory.sql.pages import with_values

_KEYSET = Keyset(blocks, "block")


class PostgresBlockLists:
    """`BlockLists`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def blocks(self, organization_id: UUID, filters: BlockList, page: Page) -> PageOf[Block]:
        query = select(*by_key(blocks)).where(blocks.c.organization_id == organization_id, *_block_filters(filters))
        if filters.agent_id is not None:
            query = query.join(
                agent_blocks,
                and_(
                    agent_blocks.c.organization_id == blocks.c.organization_id,
                    agent_blocks.c.block_id == blocks.c.id,
                    agent_blocks.c.agent_id == filters.agent_id,
                ),
            )
        async with self._engine.connect() as connection:
            query = query.where(*await _KEYSET.bounds(connection, page, organization_id))
            values = with_values(_KEYSET.order_by_scan(query, page))
            query = keyset.order_by_scan(select(values), page, values.c.created_at, values.c.id)
            result = _KEYSET.cut((await connection.execute(query)).all(), page)
        return PageOf(tuple(block_of_row(row._asdict()) for row in result.items), result.next_token)

    async def count_blocks(self, organization_id: UUID, identity_ids: Sequence[UUID] = ()) -> int:
        query = select(func.count()).select_from(blocks).where(blocks.c.organization_id == organization_id)
        if identity_ids:
            query = query.where(_about(identity_ids))
        async with self._engine.connect() as connection:
            return (await connection.execute(query)).scalar_one()

    async def block_tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        tags = select(func.unnest(blocks.c.tags).label("tag")).where(blocks.c.organization_id == organization_id)
        async with self._engine.connect() as connection:
            return await keyset.values(connection, tags.subquery().c.tag, page, query_text)

    async def versions(self, organization_id: UUID, block_id: UUID, page: PageBy[int]) -> PageOf[BlockVersion]:
        number = block_history.c.version
        start, end = version_bounds(page)
        query = select(*by_key(block_history)).where(
            block_history.c.organization_id == organization_id, block_history.c.block_id == block_id
        )
        if start is not None:
            query = query.where(number > start if page.scan_ascending else number < start)
        if end is not None:
            query = query.where(number < end if page.scan_ascending else number > end)
        values = with_values(keyset.order_by_scan(query, page, number))
        query = keyset.order_by_scan(select(values), page, values.c.version)
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
            if not rows and not await _exists(connection, organization_id, block_id):
                raise no_such_block(block_id)
        items = tuple(version_of_row(row._asdict()) for row in rows[: page.size])
        token = str(items[-1].version) if len(rows) > page.size else ""
        return PageOf(items[::-1] if page.backwards else items, token)


def _block_filters(filters: BlockList) -> list[ColumnElement[bool]]:
    conditions = []
    if filters.label is not None:
        conditions.append(blocks.c.label == filters.label)
    for column, part in (
        (blocks.c.label, filters.label_search),
        (blocks.c.value, filters.value_search),
        (blocks.c.description, filters.description_search),
    ):
        if part:
            conditions.append(column.icontains(part, autoescape=True))
    for exact, value in (
        (blocks.c.template_name, filters.template_name),
        (blocks.c.project_id, filters.project_id),
        (blocks.c.deployment_id, filters.deployment_id),
    ):
        if value is not None:
            conditions.append(exact == value)
    if filters.tags:
        tags = list(filters.tags)
        conditions.append(blocks.c.tags.overlap(tags) if filters.match_any_tag else blocks.c.tags.contains(tags))
    if filters.counts_agents:
        conditions += _count_filters(filters)
    if not filters.show_hidden:
        conditions.append(blocks.c.hidden.is_not(True))
    if filters.is_template is not None:
        conditions.append(blocks.c.is_template.is_(filters.is_template))
    if filters.identity_ids:
        conditions.append(_about(filters.identity_ids))
    if filters.identity_id is not None:
        conditions.append(_about([filters.identity_id]))
    return conditions


def _count_filters(filters: BlockList) -> list[ColumnElement[bool]]:
    """Returns conditions on the number of agents that a block is attached to."""
    agents = (
        select(func.count())
        .where(agent_blocks.c.organization_id == blocks.c.organization_id, agent_blocks.c.block_id == blocks.c.id)
        .correlate(blocks)
        .scalar_subquery()
    )
    conditions = []
    if filters.more_agents_than is not None:
        conditions.append(agents > filters.more_agents_than)
    if filters.fewer_agents_than is not None:
        conditions.append(agents < filters.fewer_agents_than)
    if filters.agent_counts:
        conditions.append(agents.in_(filters.agent_counts))
    return conditions


def _about(identity_ids: Sequence[UUID]) -> ColumnElement[bool]:
    """Returns whether a block is about one of these identities."""
    its_links = and_(
        block_identities.c.organization_id == blocks.c.organization_id, block_identities.c.block_id == blocks.c.id
    )
    return exists().where(its_links, block_identities.c.identity_id.in_(identity_ids)).correlate(blocks)


async def _exists(connection: AsyncConnection, organization_id: UUID, block_id: UUID) -> bool:
    query = select(blocks.c.id).where(blocks.c.organization_id == organization_id, blocks.c.id == block_id)
    return (await connection.execute(query)).first() is not None
