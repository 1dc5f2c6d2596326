"""The end of a tenant in one schema: all its rows, table by table, in small statements.

Which tables there are is asked of the catalogue, so that a new one is not forgotten: every table with a column
`organization_id`. Those that refer to others come first, so that no statement drags a tail of referring rows along.
"""

import time
from collections.abc import Collection, Sequence
from graphlib import CycleError, TopologicalSorter
from uuid import UUID

import asyncpg

from services.common.context import current
from services.common.errors import FailedPrecondition, PermissionDenied

# The tenant of who needs no key. It is the operator's own.
DEFAULT_ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
# Of the context that deliveries of the agent service's outbox are made with.
_PURGING_ROLE = "agent"
ROWS_AT_ONCE = 2_000
# Then the caller asks again; well within its patience.
_SECONDS = 5.0

_TABLES = """
SELECT t.oid, t.relname AS name, format('%I.%I', $1::text, t.relname) AS written
FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'organization_id' AND NOT a.attisdropped
WHERE t.relnamespace = $1::text::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
ORDER BY t.relname
"""
_REFERENCES = """
SELECT conrelid AS referring, confrelid AS referred FROM pg_constraint
WHERE contype = 'f' AND connamespace = $1::text::regnamespace AND conrelid <> confrelid
"""
_ANY = "SELECT EXISTS (SELECT FROM {table} WHERE organization_id = $1)"
# Partitions count their rows each for itself; whatever stands at such a place is of the tenant, too.
_DELETE = """
DELETE FROM {table} WHERE organization_id = $1
    AND ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE organization_id = $1 LIMIT {rows}))
"""


def organization_to_purge() -> UUID:
    """Returns the tenant of the call being served.

    Raises PermissionDenied (ROLE_NOT_PERMITTED) for whoever is not the agent service's outbox, FailedPrecondition
    (ORGANIZATION_IS_DEFAULT).
    """
    caller = current()
    if caller.role != _PURGING_ROLE:
        raise PermissionDenied("only the agent service ends a tenant", reason="ROLE_NOT_PERMITTED")
    return check_not_default(caller.organization_id)


def check_not_default(organization_id: UUID) -> UUID:
    """Returns the organization's id. Raises FailedPrecondition (ORGANIZATION_IS_DEFAULT)."""
    if organization_id == DEFAULT_ORGANIZATION:
        sentence = "the default organization is the operator's own and stays"
        raise FailedPrecondition(sentence, reason="ORGANIZATION_IS_DEFAULT")
    return organization_id


async def purge_rows(
    pool: asyncpg.Pool, schema: str, organization_id: UUID, *, keep: Collection[str] = (), seconds: float = _SECONDS
) -> bool:
    """Deletes a tenant's rows in all tables of `schema` but `keep`; False when time is up before. May be repeated.

    Raises FailedPrecondition (ORGANIZATION_IS_DEFAULT), and what the driver raises.
    """
    check_not_default(organization_id)
    end = time.monotonic() + seconds
    for name, written in await _tables(pool, schema):
        if name in keep:
            continue
        # Not counted by what went: somebody else may be at it, too.
        while await pool.fetchval(_ANY.format(table=written), organization_id):
            if time.monotonic() > end:
                return False
            await pool.execute(_DELETE.format(table=written, rows=ROWS_AT_ONCE), organization_id)
    return True


async def _tables(pool: asyncpg.Pool, schema: str) -> Sequence[tuple[str, str]]:
    """Returns the tables by name and as SQL writes them; those that refer to others come before them."""
    tables = {row["oid"]: (row["name"], row["written"]) for row in await pool.fetch(_TABLES, schema)}
    order: TopologicalSorter[int] = TopologicalSorter(dict.fromkeys(tables, ()))
    for row in await pool.fetch(_REFERENCES, schema):
        if row["referring"] in tables and row["referred"] in tables:
            order.add(row["referred"], row["referring"])
    try:
        return [tables[oid] for oid in order.static_order()]
    except CycleError as error:
        raise RuntimeError(f"tables of {schema} refer to each other in a circle: {error.args[1]}") from None
