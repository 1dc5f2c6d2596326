"""Agents on their way in and out of Postgres, and what the memory service attaches to them."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.agent.core.messages import Message
from services.agent.postgres import sql
from services.agent.postgres.conversations import window
from services.agent.postgres.rows import message_from_row
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.agents.rows import agent_columns
from services.agent.resources.conversations.service import conversation_not_found
from services.agent.resources.transfers import sql as moves
from services.agent.resources.transfers.model import ImportedAgent, ImportedConversation, ImportedGroup, Importer, Log
from services.agent.resources.transfers.spool import Spool
from services.common.errors import AlreadyExists, NotFound

_PAGE = 100


class PostgresTransfers:
    """`resources.transfers.ports.TransferStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def open_writer(self, importer: Importer) -> AsyncIterator[Spool]:
        with closing(Spool()) as spool:
            yield spool
            try:
                async with self._pool.acquire() as connection, connection.transaction():
                    await spool.replay(_Rows(connection, importer))
            except asyncpg.UniqueViolationError as error:
                raise _id_taken(error) from None

    async def claim(self, importer: Importer, agent_id: UUID) -> bool:
        claim = moves.CLAIM.bind(
            organization_id=importer.organization_id,
            reservation_id=_reservation(agent_id),
            agent_id=agent_id,
            user_id=str(importer.user_id),
            import_id=str(importer.import_id),
        )
        if await self._pool.fetchval(*claim):
            return True
        if await self._pool.fetchval(moves.IS_TAKEN, importer.organization_id, agent_id):
            raise _agent_taken(agent_id)
        return False

    async def renew(self, importer: Importer, agent_ids: Sequence[UUID]) -> Sequence[UUID]:
        rows = await self._pool.fetch(moves.RENEW, importer.organization_id, str(importer.import_id), list(agent_ids))
        return [row["subject_id"] for row in rows]

    async def release(self, importer: Importer, agent_id: UUID) -> None:
        await self._pool.execute(moves.USE_CLAIM, *_claim(importer, agent_id))

    async def find(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Sequence[UUID]:
        return [row["id"] for row in await self._pool.fetch(moves.FIND, organization_id, list(agent_ids))]

    async def window(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> Sequence[Message]:
        async with self._pool.acquire() as connection:
            if not await connection.fetchval(moves.HAS_AGENT, organization_id, agent_id):
                raise NotFound(f"Agent agent-{agent_id} not found", reason="AGENT_NOT_FOUND")
            if not await connection.fetchval(moves.HAS_CONVERSATION, organization_id, agent_id, conversation_id):
                raise conversation_not_found(conversation_id)
            return await window(connection, organization_id, conversation_id)

    async def history(self, organization_id: UUID, conversation_id: UUID) -> AsyncIterator[Message]:
        ordinal, seq = -1, 0
        while True:
            rows = await self._pool.fetch(moves.HISTORY, organization_id, conversation_id, ordinal, seq, _PAGE)
            for row in rows:
                yield message_from_row(row)
            if len(rows) < _PAGE:
                return
            ordinal, seq = rows[-1]["ordinal"], rows[-1]["seq"]


class _Rows:
    """`spool.ImportRows`."""

    def __init__(self, connection: Any, importer: Importer) -> None:
        self._connection = connection
        self._importer = importer
        self._organization_id = importer.organization_id
        self._user_id = importer.user_id

    async def agent(self, new: ImportedAgent, settings: AgentSettings, log: Log) -> None:
        if not await self._connection.fetchval(moves.USE_CLAIM, *_claim(self._importer, new.id)):
            raise _agent_taken(new.id)
        columns = agent_columns(settings) | {"organization_id": self._organization_id, "id": new.id}
        columns |= {"created_by_id": self._user_id, "last_updated_by_id": self._user_id}
        if new.created_at is not None:
            columns |= {"created_at": new.created_at, "updated_at": new.created_at}
        await self._connection.execute(moves.insert_agent(tuple(columns)), *columns.values())
        if new.identity_ids:
            await self._identities(new)
        its_own = ImportedConversation(id=new.id, agent_id=new.id, prompt=new.prompt, created_at=new.created_at)
        await self.conversation(its_own, (), log)

    async def _identities(self, new: ImportedAgent) -> None:
        rows = await self._connection.fetch(
            moves.IDENTITIES, self._organization_id, new.id, list(dict.fromkeys(new.identity_ids))
        )
        present = {row["identity_id"] for row in rows}
        if missing := [each for each in new.identity_ids if each not in present]:
            raise NotFound(f"Identity identity-{missing[0]} not found", reason="IDENTITY_NOT_FOUND")

    async def conversation(self, new: ImportedConversation, labels: Sequence[str], log: Log) -> None:
        settings = {name: new.settings.get(name) for name in ("summary", "model", "model_settings")}
        statement = moves.CONVERSATION.bind(
            organization_id=self._organization_id,
            id=new.id,
            agent_id=new.agent_id,
            user_id=self._user_id,
            isolated_labels=list(labels),
            created_at=new.created_at,
            log_id=log.log_id,
            **settings,
        )
        await self._connection.execute(*statement)
        if new.prompt:
            hash = sha256(new.prompt.encode()).digest()
            await self._connection.execute(moves.PROMPT, self._organization_id, new.agent_id, new.id, hash, new.prompt)

    async def messages(self, log: Log, first_seq: int, rows: Sequence[dict[str, Any]]) -> None:
        ids = (self._organization_id, log.log_id, first_seq, log.agent_id, log.conversation_id)
        await self._connection.execute(sql.IMPORT_MESSAGES, *ids, rows)

    async def head(self, log: Log) -> None:
        await self._connection.execute(
            moves.HEAD,
            self._organization_id,
            log.conversation_id,
            log.next_seq,
            log.window_seq or log.next_seq,
            log.summary_id,
            log.pending_message_id,
            log.last_message_at,
        )

    async def group(self, new: ImportedGroup) -> None:
        statement = moves.GROUP.bind(
            organization_id=self._organization_id,
            id=new.id,
            description=new.description,
            manager_type=new.manager_type,
            manager_agent_id=new.manager_agent_id,
            manager_settings=dict(new.manager_settings),
            shared_block_ids=list(new.shared_block_ids),
            user_id=self._user_id,
            agent_ids=list(dict.fromkeys(new.agent_ids)),
            template_id=new.template_id,
            base_template_id=new.base_template_id,
            deployment_id=new.deployment_id,
        )
        await self._connection.execute(*statement)


def _reservation(agent_id: UUID) -> UUID:
    return uuid5(agent_id, "reservation")


def _claim(importer: Importer, agent_id: UUID) -> tuple[UUID, UUID, str]:
    return importer.organization_id, _reservation(agent_id), str(importer.import_id)


def _agent_taken(agent_id: UUID) -> AlreadyExists:
    return _taken("id", f"agent-{agent_id}")


def _id_taken(error: asyncpg.UniqueViolationError) -> AlreadyExists:
    """Postgres says "Key (organization_id, id)=(..., ...) already exists."."""
    value = str(error.detail or "").partition(")=(")[2].partition(")")[0].rpartition(" ")[2]
    return _taken(f"id of a {str(error.table_name or 'entity').removesuffix('s')}", value)


def _taken(what: str, value: str) -> AlreadyExists:
    sentence = f"The {what} {value} is taken; nothing was stored"
    return AlreadyExists(sentence, reason="IMPORT_EXISTS", metadata={"entity": value})
