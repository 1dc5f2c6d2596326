"""The identities that blocks are about, on Postgres."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

import asyncpg

from services.memory.blocks.store.blocks import MISSING, no_such_block

# In their order, after those that are there.
_LINK = """
INSERT INTO memory.block_identities (organization_id, block_id, identity_id, attached_at)
SELECT $1, wanted.id, $2, clock_timestamp() + wanted.place * interval '1 microsecond'
FROM unnest($3::uuid[]) WITH ORDINALITY AS wanted (id, place)
ON CONFLICT (organization_id, block_id, identity_id) DO NOTHING
"""
_UNLINK = """
DELETE FROM memory.block_identities WHERE organization_id = $1 AND identity_id = $2 AND block_id = $3
"""
_UNLINK_OTHERS = """
DELETE FROM memory.block_identities WHERE organization_id = $1 AND identity_id = $2 AND block_id <> ALL($3)
"""
_LINKED = """
SELECT identity_id, block_id FROM memory.block_identities WHERE organization_id = $1 AND identity_id = ANY($2)
ORDER BY attached_at, block_id
"""
_PURGE = "DELETE FROM memory.block_identities WHERE organization_id = $1 AND identity_id = $2"


class PostgresIdentities:
    """`IdentityStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def attach(self, organization_id: UUID, block_id: UUID, identity_id: UUID) -> None:
        await self._link(self._pool, organization_id, identity_id, [block_id])

    async def detach(self, organization_id: UUID, block_id: UUID, identity_id: UUID) -> None:
        await self._check(organization_id, [block_id])
        await self._pool.execute(_UNLINK, organization_id, identity_id, block_id)

    async def set_blocks(self, organization_id: UUID, identity_id: UUID, block_ids: Sequence[UUID]) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_UNLINK_OTHERS, organization_id, identity_id, block_ids)
            await self._link(connection, organization_id, identity_id, block_ids)

    async def blocks_of(self, organization_id: UUID, identity_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[UUID]]:
        block_ids: dict[UUID, list[UUID]] = defaultdict(list)
        for row in await self._pool.fetch(_LINKED, organization_id, identity_ids):
            block_ids[row["identity_id"]].append(row["block_id"])
        return block_ids

    async def purge(self, organization_id: UUID, identity_id: UUID) -> None:
        await self._pool.execute(_PURGE, organization_id, identity_id)

    async def _link(
        self,
        connection: "asyncpg.Pool | asyncpg.pool.PoolConnectionProxy",
        organization_id: UUID,
        identity_id: UUID,
        block_ids: Sequence[UUID],
    ) -> None:
        try:
            await connection.execute(_LINK, organization_id, identity_id, block_ids)
        except asyncpg.ForeignKeyViolationError:
            await self._check(organization_id, block_ids)
            # One that was there again, or never was away: the client may look for itself.
            raise no_such_block(block_ids[0]) from None

    async def _check(self, organization_id: UUID, block_ids: Sequence[UUID]) -> None:
        """Raises NotFound (BLOCK_NOT_FOUND) for the first that is not there."""
        missing = await self._pool.fetchrow(MISSING, organization_id, block_ids)
        if missing is not None:
            raise no_such_block(missing["id"])
