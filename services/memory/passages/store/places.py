"""Places in SQL: which archives they are, and what has to be known of these to search them."""

from typing import Any, assert_never
from uuid import UUID

from services.common.errors import NotFound
from services.memory.archives.model import EmbeddingModel
from services.memory.archives.store import ARCHIVE_COLUMNS, archive_of_row, no_such_archive
from services.memory.core.ranking.search import Part, Scope, scope_of
from services.memory.passages.model import FoldersOfAgent, InArchive, InFolder, OfAgent, OfTenant, Place

_OF_KIND = "SELECT i.id FROM memory.archives i WHERE i.organization_id = $1 AND i.id = $2 AND i.kind = {kind}"
_SCOPE = f"""
SELECT {ARCHIVE_COLUMNS}
FROM memory.archives a LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE a.organization_id = $1 AND a.id IN ({{archives}})
"""
# A tenant may have many archives, so ids are listed only where there is more than one model to tell apart.
_SCOPE_OF_TENANT = """
SELECT e.id, e.handle, e.dimensions, sum(a.passage_count)::bigint AS passages, sum(a.word_count)::bigint AS words,
    CASE WHEN e.id IS NOT NULL AND count(e.id) OVER () > 1 THEN array_agg(a.id) END AS archive_ids
FROM memory.archives a LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE a.organization_id = $1 AND a.kind = 1 AND a.passage_count > 0
GROUP BY e.id, e.handle, e.dimensions
"""


def archive_ids(place: Place) -> tuple[str, UUID | None]:
    """Returns SQL for the ids of a place's archives, in which $1 is the tenant and $2 the value returned beside it."""
    match place:
        case OfAgent():
            of_agent = (
                "SELECT m.archive_id FROM memory.agent_archives m WHERE m.organization_id = $1 AND m.agent_id = $2"
            )
            return of_agent, place.agent_id
        case InArchive():
            return _OF_KIND.format(kind=1), place.archive_id
        case InFolder():
            return _OF_KIND.format(kind=2), place.folder_id
        case FoldersOfAgent():
            of_agent = "SELECT m.folder_id FROM memory.agent_folders m WHERE m.organization_id = $1 AND m.agent_id = $2"
            return of_agent, place.agent_id
        case OfTenant():
            every = (
                "SELECT i.id FROM memory.archives i WHERE i.organization_id = $1 AND i.kind = 1 AND $2::uuid IS NULL"
            )
            return every, None
        case _:
            assert_never(place)


async def scope(executor: Any, organization_id: UUID, place: Place) -> Scope:
    """See `PassageStore`."""
    if isinstance(place, OfTenant):
        return _scope_of_tenant(await executor.fetch(_SCOPE_OF_TENANT, organization_id))
    archives, value = archive_ids(place)
    rows = await executor.fetch(_SCOPE.format(archives=archives), organization_id, value)
    if not rows:
        refuse_missing(place)
    return scope_of([archive_of_row(row) for row in rows])


def refuse_missing(place: Place) -> None:
    """Raises NotFound where the place is one archive or folder: it is known not to be there."""
    match place:
        case InArchive():
            raise no_such_archive(place.archive_id)
        case InFolder():
            raise NotFound(f"Folder source-{place.folder_id} not found", reason="FOLDER_NOT_FOUND")


def _scope_of_tenant(groups: list[Any]) -> Scope:
    """Returns groups of archives by embedding model, in a scope that is the whole tenant."""
    by_model = {
        EmbeddingModel(id=group["id"], handle=group["handle"], dimensions=group["dimensions"]): Part(
            None if group["archive_ids"] is None else tuple(group["archive_ids"]), group["passages"]
        )
        for group in groups
        if group["id"] is not None
    }
    whole = Part(None, sum(group["passages"] for group in groups))
    return Scope(whole, sum(group["words"] for group in groups), by_model)
