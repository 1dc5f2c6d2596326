"""Pages of blocks and versions, with SQLAlchemy: filters and cursors both ways."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import ColumnElement, and_, exists, func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common import keyset
from services.common.keyset import Keyset
from services.common.paging import Page, PageBy, PageOf
from services.memory.adapters import rows
from services.memory.adapters.block_history import version_of_row
from services.memory.adapters.blocks import no_such_block
from services.memory.adapters.pages import with_values
from services.memory.adapters.schema import agent_blocks, block_history, block_identities, blocks
from services.memory.lists import BlockList, version_bounds
from services.memory.model import Block, BlockVersion

_KEYSET = Keyset(blocks, "block")


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
            query = query.where(*await _KEYSET.bounds(connection, page, organization_id))
            values = with_values(_KEYSET.ordered(query, page))
            query = keyset.ordered(select(values), page, values.c.created_at, values.c.id)
            found = _KEYSET.cut((await connection.execute(query)).all(), page)
        return PageOf(tuple(rows.block(row._asdict()) for row in found.items), found.next_token)

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
        query = select(block_history).where(
            block_history.c.organization_id == organization_id, block_history.c.block_id == block_id
        )
        if start is not None:
            query = query.where(number > start if page.scan_ascending else number < start)
        if end is not None:
            query = query.where(number < end if page.scan_ascending else number > end)
        values = with_values(keyset.ordered(query, page, number))
        query = keyset.ordered(select(values), page, values.c.version)
        async with self._engine.connect() as connection:
            found = (await connection.execute(query)).all()
            if not found and not await _exists(connection, organization_id, block_id):
                raise no_such_block(block_id)
        items = tuple(version_of_row(row._asdict()) for row in found[: page.size])
        token = str(items[-1].version) if len(found) > page.size else ""
        return PageOf(items[::-1] if page.backwards else items, token)


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
    for exact, value in (
        (blocks.c.template_name, wanted.template_name),
        (blocks.c.project_id, wanted.project_id),
        (blocks.c.deployment_id, wanted.deployment_id),
    ):
        if value is not None:
            filters.append(exact == value)
    if wanted.tags:
        tags = list(wanted.tags)
        filters.append(blocks.c.tags.overlap(tags) if wanted.match_any_tag else blocks.c.tags.contains(tags))
    if wanted.counts_agents:
        filters += _count_filters(wanted)
    if not wanted.show_hidden:
        filters.append(blocks.c.hidden.is_(False))
    if wanted.is_template is not None:
        filters.append(blocks.c.is_template.is_(wanted.is_template))
    if wanted.identity_ids:
        filters.append(_about(wanted.identity_ids))
    if wanted.identity_id is not None:
        filters.append(_about([wanted.identity_id]))
    return filters


def _count_filters(wanted: BlockList) -> list[ColumnElement[bool]]:
    """By the number of agents that a block is attached to."""
    agents = (
        select(func.count())
        .where(agent_blocks.c.organization_id == blocks.c.organization_id, agent_blocks.c.block_id == blocks.c.id)
        .correlate(blocks)
        .scalar_subquery()
    )
    filters = []
    if wanted.more_agents_than is not None:
        filters.append(agents > wanted.more_agents_than)
    if wanted.fewer_agents_than is not None:
        filters.append(agents < wanted.fewer_agents_than)
    if wanted.agent_counts:
        filters.append(agents.in_(wanted.agent_counts))
    return filters


def _about(identity_ids: Sequence[UUID]) -> ColumnElement[bool]:
    """Whether a block is about one of these identities."""
    its_links = and_(
        block_identities.c.organization_id == blocks.c.organization_id, block_identities.c.block_id == blocks.c.id
    )
    return exists().where(its_links, block_identities.c.identity_id.in_(identity_ids)).correlate(blocks)


async def _exists(connection: AsyncConnection, organization_id: UUID, block_id: UUID) -> bool:
    query = select(blocks.c.id).where(blocks.c.organization_id == organization_id, blocks.c.id == block_id)
    return (await connection.execute(query)).first() is not None
