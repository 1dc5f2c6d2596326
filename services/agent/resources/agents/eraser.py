"""The end of agents: their runs are stopped, then all they left is erased."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Table, Uuid, bindparam, delete, exists, func, select, text, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.resources.queries import autocommit
from services.agent.resources.tables import (
    agents,
    compiled_prompts,
    conversation_heads,
    conversation_line,
    conversations,
    runs,
)

# Rows of one statement: small transactions do not get in the way of turns.
_MESSAGES_AT_ONCE = 2_000
_RUNS_AT_ONCE = 200

# What the agent said, and what it had inherited: a message lasts as long as the conversation in which it was said, or
# one that shows it, or an agent that inherited it.
_ERASE_MESSAGES = text("""
DELETE FROM agent.messages WHERE organization_id = :organization_id AND (log_id, seq) IN (
    SELECT m.log_id, m.seq FROM (
        SELECT log_id, seq, conversation_id FROM agent.messages
        WHERE organization_id = :organization_id AND agent_id = :agent_id
        UNION ALL
        SELECT i.log_id, i.seq, i.conversation_id
        FROM agent.inherited_segments s
        JOIN agent.messages i ON i.organization_id = :organization_id AND i.log_id = s.log_id
            AND i.seq BETWEEN s.from_seq AND s.to_seq
        WHERE s.organization_id = :organization_id AND s.agent_id = :agent_id
    ) m
    WHERE NOT EXISTS (
        SELECT FROM agent.present_conversations c
        WHERE c.organization_id = :organization_id AND c.id = m.conversation_id)
    AND NOT EXISTS (
        SELECT FROM agent.present_ranges other
        WHERE other.organization_id = :organization_id AND other.log_id = m.log_id
            AND m.seq BETWEEN other.from_seq AND other.to_seq)
    LIMIT :most
)
""").bindparams(bindparam("organization_id", type_=Uuid), bindparam("agent_id", type_=Uuid))


class PostgresEraser:
    """`resources.agents.ports.Eraser`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._reading = autocommit(engine)

    async def exists(self, organization_id: UUID, agent_id: UUID) -> bool:
        async with self._reading.connect() as connection:
            query = select(exists().where(*_is_agent(organization_id, agent_id)))
            return bool((await connection.execute(query)).scalar_one())

    async def stop(self, organization_id: UUID, agent_id: UUID) -> bool:
        async with self._engine.begin() as connection:
            return not await stop_runs(connection, organization_id, agent_id)

    async def erase(self, organization_id: UUID, agent_id: UUID) -> bool:
        if not await self.stop(organization_id, agent_id):
            return False
        await self._erase_messages(organization_id, agent_id)
        # Facts, steps and keys go with their runs.
        await self._erase_in_parts(runs, (runs.c.id,), organization_id, agent_id, _RUNS_AT_ONCE)
        async with self._engine.begin() as connection:
            await connection.execute(delete(compiled_prompts).where(*_of(compiled_prompts, organization_id, agent_id)))
            # Conversations with their heads, segments and lines go with the agent.
            await connection.execute(
                delete(agents).where(*_is_agent(organization_id, agent_id), agents.c.deleted_at.is_not(None))
            )
        return True

    async def _erase_messages(self, organization_id: UUID, agent_id: UUID) -> None:
        """Some at a time, those that nobody else has as a past."""
        values = {"organization_id": organization_id, "agent_id": agent_id, "most": _MESSAGES_AT_ONCE}
        erased = _MESSAGES_AT_ONCE
        while erased == _MESSAGES_AT_ONCE:
            async with self._reading.connect() as connection:
                erased = (await connection.execute(_ERASE_MESSAGES, values)).rowcount

    async def _erase_in_parts(
        self,
        table: Table,
        key: tuple[ColumnElement[Any], ...],
        organization_id: UUID,
        agent_id: UUID,
        at_once: int,
    ) -> None:
        some = select(*key).where(*_of(table, organization_id, agent_id)).limit(at_once)
        statement = delete(table).where(table.c.organization_id == organization_id, tuple_(*key).in_(some))
        erased = at_once
        while erased == at_once:
            async with self._reading.connect() as connection:
                erased = (await connection.execute(statement)).rowcount


async def stop_runs(connection: AsyncConnection, organization_id: UUID, agent_id: UUID) -> int:
    """Asks the agent's running runs to stop and ends those that wait in line; how many are running.

    Locks in the order of the turn path: running runs, heads of conversations, waiting runs.
    """
    of_agent = _of(runs, organization_id, agent_id)
    running = await connection.execute(
        update(runs).where(*of_agent, runs.c.status == "running").values(cancel_requested=True)
    )
    conversation_ids = select(conversations.c.id).where(*_of(conversations, organization_id, agent_id))
    in_conversations = (
        conversation_heads.c.organization_id == organization_id,
        conversation_heads.c.conversation_id.in_(conversation_ids),
    )
    await connection.execute(
        select(conversation_heads.c.conversation_id)
        .where(*in_conversations)
        .order_by(conversation_heads.c.conversation_id)
        .with_for_update()
    )
    await connection.execute(
        delete(conversation_line).where(
            conversation_line.c.organization_id == organization_id,
            conversation_line.c.conversation_id.in_(conversation_ids),
        )
    )
    await connection.execute(
        update(runs)
        .where(*of_agent, runs.c.status == "created")
        .values(status="cancelled", stop_reason="cancelled", completed_at=func.clock_timestamp())
    )
    await connection.execute(update(conversation_heads).where(*in_conversations).values(waiting=0))
    return running.rowcount


def _of(table: Table, organization_id: UUID, agent_id: UUID) -> tuple[ColumnElement[bool], ...]:
    return table.c.organization_id == organization_id, table.c.agent_id == agent_id


def _is_agent(organization_id: UUID, agent_id: UUID) -> tuple[ColumnElement[bool], ...]:
    return agents.c.organization_id == organization_id, agents.c.id == agent_id
