"""Pages of archives and passages, with SQLAlchemy: `PassageLists`."""

from collections.abc import Sequence
from typing import Any, assert_never
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Select, and_, func, literal_column, or_, select, true
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.common.core.paging import Page, PageOf
from services.common.keyset import Keyset, order_by_scan
from services.memory.archives.model import Archive, ArchiveList
from services.memory.archives.store import archive_of_row
from services.memory.archives.tables import agent_archives, archives, embedding_models
from services.memory.files.tables import files
from services.memory.folders.tables import agent_folders, folders
from services.memory.passages.model import (
    FoldersOfAgent,
    InArchive,
    InFolder,
    OfAgent,
    OfTenant,
    Passage,
    PassageList,
    Place,
)
from services.memory.passages.store.places import refuse_missing
from services.memory.passages.store.rows import PASSAGE_TEXT, passage_of_row
from services.memory.passages.tables import passage_tags, passage_vectors, passages

# Tagged passages that are sooner looked up than the others passed over.
_FEW = 5_000
# Bytes of a vector in Postgres, and of each of its values.
_HALFVEC_HEAD, _HALFVEC_VALUE = 8, 2

_ARCHIVES = Keyset(archives, "archive")
_PASSAGES = Keyset(passages, "passage")


class PostgresPassageLists:
    """`PassageLists`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def passages(self, organization_id: UUID, request: PassageList, page: Page) -> PageOf[Passage]:
        within = passages.c.archive_id.in_(_archive_ids(organization_id, request.place))
        async with self._engine.connect() as connection:
            limits = await _PASSAGES.bounds(connection, page, organization_id, within)
            few = await _tags_are_few(connection, organization_id, request)
            query = _passages(organization_id, request, page, limits, few=few)
            result = _PASSAGES.cut((await connection.execute(query)).all(), page)
            if not result.items and not await _exists(connection, organization_id, request.place):
                refuse_missing(request.place)
        return PageOf(tuple(passage_of_row(row._asdict()) for row in result.items), result.next_token)

    async def storage(self, organization_id: UUID) -> tuple[int, int]:
        counted = (
            select(passage_vectors.c.model_id, func.count().label("vectors"))
            .where(passage_vectors.c.organization_id == organization_id)
            .group_by(passage_vectors.c.model_id)
            .subquery()
        )
        size = counted.c.vectors * (_HALFVEC_HEAD + _HALFVEC_VALUE * embedding_models.c.dimensions)
        query = select(func.coalesce(func.sum(counted.c.vectors), 0), func.coalesce(func.sum(size), 0)).join_from(
            counted, embedding_models, embedding_models.c.id == counted.c.model_id
        )
        async with self._engine.connect() as connection:
            vectors, size_bytes = (await connection.execute(query)).one()
        return int(vectors), int(size_bytes)

    async def archives(self, organization_id: UUID, filters: ArchiveList, page: Page) -> PageOf[Archive]:
        query = (
            select(archives, embedding_models.c.handle, embedding_models.c.dimensions)
            .outerjoin(embedding_models, embedding_models.c.id == archives.c.model_id)
            .where(archives.c.organization_id == organization_id, archives.c.kind == 1)
        )
        if filters.name is not None:
            query = query.where(archives.c.name == filters.name)
        if filters.agent_id is not None:
            query = query.where(archives.c.id.in_(_archive_ids(organization_id, OfAgent(filters.agent_id))))
        async with self._engine.connect() as connection:
            result = await _ARCHIVES.page(connection, query, page, organization_id)
        return PageOf(tuple(archive_of_row(row._asdict()) for row in result.items), result.next_token)


def _archive_ids(organization_id: UUID, place: Place) -> Select[tuple[UUID]]:
    """See `archive_ids` in places.py."""
    match place:
        case OfAgent():
            return select(agent_archives.c.archive_id.label("id")).where(
                agent_archives.c.organization_id == organization_id, agent_archives.c.agent_id == place.agent_id
            )
        case FoldersOfAgent():
            return select(agent_folders.c.folder_id.label("id")).where(
                agent_folders.c.organization_id == organization_id, agent_folders.c.agent_id == place.agent_id
            )
        case InArchive():
            return _of_kind(organization_id, 1).where(archives.c.id == place.archive_id)
        case InFolder():
            return _of_kind(organization_id, 2).where(archives.c.id == place.folder_id)
        case OfTenant():
            return _of_kind(organization_id, 1)
        case _:
            assert_never(place)


def _of_kind(organization_id: UUID, kind: int) -> Select[tuple[UUID]]:
    return select(archives.c.id).where(archives.c.organization_id == organization_id, archives.c.kind == kind)


def _passages(
    organization_id: UUID, request: PassageList, page: Page, limits: list[ColumnElement[bool]], *, few: bool
) -> Select[Any]:
    """Selects the page's rows (PASSAGE_COLUMNS). Of each archive its own first ones are read, in its index's order.

    few: see `_tags_are_few`.
    """
    of = _archive_ids(organization_id, request.place).subquery("of")
    first = (
        select(*(column for column in passages.c if column.name != "words"))
        .where(passages.c.organization_id == organization_id, passages.c.archive_id == of.c.id, *limits)
        .where(*_filters(organization_id, of, request, few=few))
        .correlate(of)
    )
    firsts = order_by_scan(first, page, passages.c.created_at, passages.c.id).lateral("firsts")
    joined = select(firsts).select_from(of.join(firsts, true()))
    p = order_by_scan(joined, page, firsts.c.created_at, firsts.c.id).subquery("p")
    columns = (column for column in p.c if column.name != "text")
    text: ColumnElement[str] = literal_column(PASSAGE_TEXT).label("text")
    file_name = (folders.c.name + "/" + files.c.name).label("file_name")
    query = select(*columns, text, embedding_models.c.handle.label("embedding"), file_name, files.c.folder_id)
    return order_by_scan(_with_joins(query.select_from(p), p), page, p.c.created_at, p.c.id)


def _with_joins(query: Select[Any], p: FromClause) -> Select[Any]:
    """Joins the model whose vector each has, and the names of its file."""
    tenant, archive = p.c.organization_id, p.c.archive_id
    vectors, models = passage_vectors.c, embedding_models.c
    with_vector = and_(
        vectors.organization_id == tenant,
        vectors.archive_id == archive,
        vectors.passage_id == p.c.id,
        vectors.model_id == archives.c.model_id,
    )
    return (
        query.join(archives, and_(archives.c.organization_id == tenant, archives.c.id == archive))
        .outerjoin(passage_vectors, with_vector)
        .outerjoin(embedding_models, models.id == vectors.model_id)
        .outerjoin(files, and_(files.c.organization_id == tenant, files.c.id == p.c.file_id))
        .outerjoin(folders, and_(folders.c.organization_id == tenant, folders.c.id == files.c.folder_id))
    )


def _filters(organization_id: UUID, of: FromClause, request: PassageList, *, few: bool) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = []
    tags, start, end = list(request.filter.tags), request.filter.start, request.filter.end
    if tags:
        of_row = passages.c.tags
        filters.append(of_row.contains(tags) if request.filter.match_all_tags else of_row.overlap(tags))
    if tags and few:
        tagged = _with_tags(organization_id, tags).where(passage_tags.c.archive_id == of.c.id).correlate(of)
        filters.append(passages.c.id.in_(tagged))
    if start is not None:
        filters.append(passages.c.created_at >= start)
    if end is not None:
        filters.append(passages.c.created_at <= end)
    as_of = request.filter.as_of
    if as_of is not None:
        filters.append(func.coalesce(passages.c.valid_from, passages.c.created_at) <= as_of)
        filters.append(or_(passages.c.valid_to.is_(None), passages.c.valid_to > as_of))
    elif not request.filter.history:
        filters.append(or_(passages.c.valid_to.is_(None), passages.c.valid_to > func.now()))
    if request.search:
        filters.append(passages.c.text.icontains(request.search, autoescape=True))
    return filters


def _with_tags(organization_id: UUID, tags: Sequence[str]) -> Select[tuple[UUID]]:
    """Returns ids of the passages that have any of the tags."""
    return select(passage_tags.c.passage_id).where(
        passage_tags.c.organization_id == organization_id, passage_tags.c.tag.in_(tags)
    )


async def _tags_are_few(connection: AsyncConnection, organization_id: UUID, request: PassageList) -> bool:
    """Returns whether passages are found sooner by these tags than by going through all of them in order."""
    if not request.filter.tags:
        return False
    within = passage_tags.c.archive_id.in_(_archive_ids(organization_id, request.place))
    some = _with_tags(organization_id, request.filter.tags).where(within).limit(_FEW + 1).subquery()
    return (await connection.execute(select(func.count()).select_from(some))).scalar_one() <= _FEW


async def _exists(connection: AsyncConnection, organization_id: UUID, place: Place) -> bool:
    query = _archive_ids(organization_id, place).limit(1)
    return (await connection.execute(query)).first() is not None
