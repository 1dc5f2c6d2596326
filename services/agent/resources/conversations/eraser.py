"""The end of conversations: their runs are stopped, then what nobody else shows is erased."""

from typing import Any
from uuid import UUID

import asyncpg

from services.agent.resources.conversations import sql
from services.common.ids import to_public

# Rows of one statement: small transactions do not get in the way of turns.
_MESSAGES_AT_ONCE = 2_000
_RUNS_AT_ONCE = 200


class PostgresConversationEraser:
    """`resources.conversations.ports.ConversationEraser`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def exists(self, organization_id: UUID, conversation_id: UUID) -> bool:
        return bool(await self._pool.fetchval(sql.EXISTS, organization_id, conversation_id))

    async def stop(self, organization_id: UUID, conversation_id: UUID) -> bool:
        async with self._pool.acquire() as connection, connection.transaction():
            return not await stop_runs(connection, organization_id, conversation_id)

    async def erase(self, organization_id: UUID, conversation_id: UUID) -> bool:
        if not await self.stop(organization_id, conversation_id):
            return False
        ids = (organization_id, conversation_id)
        await self._erase_in_parts(_MESSAGES_AT_ONCE, sql.ERASE_MESSAGES, *ids, _MESSAGES_AT_ONCE)
        name = to_public("conv", conversation_id)
        await self._erase_in_parts(_RUNS_AT_ONCE, sql.ERASE_RUNS, *ids, _RUNS_AT_ONCE, name)
        await self._pool.execute(sql.ERASE, *ids, name)
        return True

    async def _erase_in_parts(self, at_once: int, statement: str, *arguments: Any) -> None:
        erased = at_once
        while erased == at_once:
            done = await self._pool.execute(statement, *arguments)
            erased = int(done.removeprefix("DELETE "))


async def stop_runs(connection: Any, organization_id: UUID, conversation_id: UUID) -> int:
    """Asks the conversation's running runs to stop and ends those that wait in line; how many are running."""
    running = await connection.fetch(sql.STOP_RUNNING, organization_id, conversation_id)
    for statement in (sql.FORGET_LINE, sql.EMPTY_LINE, sql.STOP_WAITING):
        await connection.execute(statement, organization_id, conversation_id)
    return len(running)
