"""Stored messages one by one, and all of a tenant, in Postgres.

A message that is changed says the new text in its own row, so that windows, searches and lists go on as they are; what
it said before goes to agent.message_revisions in the same transaction.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.core.messages import Message, system_message_id
from services.agent.core.page_tokens import MessagePage
from services.agent.postgres import sql
from services.agent.postgres.rows import message_from_row, message_to_row
from services.agent.resources.agents.rows import agent_not_found
from services.agent.resources.messages.embedding import KIND
from services.agent.resources.messages.ports import PromptPlace
from services.agent.resources.messages.service import message_not_found
from services.common.core.paging import Moment, PageOf, cut, moment_of, moment_token
from services.common.errors import NotFound
from services.common.ids import uuid7

_COLUMNS = ", ".join(f"m.{name}" for name in sql.MESSAGE_COLUMNS.split(", "))
_IS_PRESENT = "EXISTS (SELECT FROM agent.agents a WHERE a.organization_id = $1 AND a.id = %s AND a.deleted_at IS NULL)"
_PRESENT = _IS_PRESENT % "m.agent_id"
_FIRST = Moment(datetime(1, 1, 2, tzinfo=UTC), UUID(int=0))
_LAST = Moment(datetime(9999, 12, 30, tzinfo=UTC), UUID(int=2**128 - 1))
_LAST_ID = 2**128 - 1
_BEFORE = timedelta(microseconds=1)
# Conversations looked at in one statement.
_AT_ONCE = 5_000

# Messages that are in a conversation still; forks share them. $1 organization, $2 and $3 after this place, $4 and $5
# before this one, $6 most, %s: another condition, and the direction
_ALL = f"""
SELECT {_COLUMNS} FROM agent.messages m
WHERE m.organization_id = $1 AND (m.created_at, m.id) > ($2, $3) AND (m.created_at, m.id) < ($4, $5) AND {_PRESENT}
    AND EXISTS (
        SELECT FROM agent.conversation_segments s
        JOIN agent.conversations c
            ON c.organization_id = $1 AND c.id = s.conversation_id AND c.deleted_at IS NULL
        WHERE s.organization_id = $1 AND s.log_id = m.log_id
            AND m.seq BETWEEN s.from_seq AND coalesce(s.to_seq, 9223372036854775807))
    %s
ORDER BY m.created_at %s, m.id %s LIMIT $6
"""
# Where prompts stand. $1 organization, $2 from then, $3 to then, $4 most, %s: another condition, and the direction
_PROMPTS = f"""
SELECT c.id, c.agent_id, c.created_at FROM agent.conversations c
WHERE c.organization_id = $1 AND c.created_at BETWEEN $2 AND $3 AND c.deleted_at IS NULL
    AND {_IS_PRESENT % "c.agent_id"} %s
ORDER BY c.created_at %s LIMIT $4
"""
# $1 organization, $2 ids
_FIND = f"""
SELECT {_COLUMNS} FROM agent.messages m
WHERE m.organization_id = $1 AND m.id = ANY($2::uuid[]) AND {_PRESENT} ORDER BY m.id LIMIT 1
"""
# $1 organization, $2 ids, $3 agent
_LOCK = f"""
SELECT {_COLUMNS}, m.log_id FROM agent.messages m
WHERE m.organization_id = $1 AND m.id = ANY($2::uuid[]) AND m.agent_id = $3 ORDER BY m.id LIMIT 1 FOR UPDATE
"""
# $1 organization, $2 message, $3 user
_KEEP = """
INSERT INTO agent.message_revisions (organization_id, message_id, number, content, replaced_by_id)
SELECT $1, $2, 1 + (SELECT count(*) FROM agent.message_revisions r WHERE r.organization_id = $1 AND r.message_id = $2),
       m.content, $3
FROM agent.messages m WHERE m.organization_id = $1 AND m.id = $2
"""
# $1 organization, $2 messages
_REWRITE = f"""
UPDATE agent.messages s
SET content = said.content, search = said.search, search_more = said.search_more
FROM (
    SELECT m.id, m.content, to_tsvector('english', m.search) || to_tsvector('simple', m.search) AS search,
           (SELECT array_agg(to_tsvector('english', t) || to_tsvector('simple', t))
            FROM jsonb_array_elements_text(m.search_more) t) AS search_more
    FROM {sql.messages_in("$2")}
) said
WHERE s.organization_id = $1 AND s.id = said.id
"""
# The vector goes at once; where the log has been read for vectors, or is being read, another follows when nobody can
# store the old one any more. $1 organization, $2 message, $3 log, $4 order, $5 kind, $6 payload
_FORGET_VECTOR = """
WITH gone AS (DELETE FROM agent.message_vectors WHERE organization_id = $1 AND message_id = $2)
INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload, not_before)
SELECT $1, $4, $5, $2, $6::jsonb, greatest(k.not_before, now()) FROM agent.vector_marks k
WHERE k.organization_id = $1 AND k.log_id = $3
"""
# $1 organization, $2 conversation, $3 agent
_LOCK_HEAD = """
SELECT h.log_id FROM agent.conversation_heads h
JOIN agent.conversations c ON c.organization_id = $1 AND c.id = $2 AND c.agent_id = $3 AND c.deleted_at IS NULL
WHERE h.organization_id = $1 AND h.conversation_id = $2 FOR UPDATE OF h
"""
# $1 organization, $2 ids
_THERE = f"""
SELECT {_COLUMNS} FROM agent.messages m
WHERE m.organization_id = $1 AND m.id = ANY($2::uuid[]) ORDER BY m.id
"""
# $1 organization, $2 conversation, $3 agent, $4 messages, $5 number of messages, $6 now
_ADD = f"""
WITH head AS (
    UPDATE agent.conversation_heads SET next_seq = next_seq + $5, last_message_at = $6
    WHERE organization_id = $1 AND conversation_id = $2
    RETURNING log_id, next_seq - $5 AS first_seq
)
{sql.INSERT_MESSAGES}
SELECT $1, head.log_id, head.first_seq + m.place, m.id, $3, $2, NULL, NULL, NULL, {sql.MESSAGE_VALUES}
FROM head, {sql.messages_in("$4")}
"""
# $1 organization, $2 after this one, $3 most
_CONVERSATIONS = """
SELECT c.id, c.agent_id, c.created_at FROM agent.conversations c
WHERE c.organization_id = $1 AND c.deleted_at IS NULL AND c.id > $2 ORDER BY c.id LIMIT $3
"""


class PostgresMessages:
    """`resources.messages.ports.MessageStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def all(
        self, organization_id: UUID, page: MessagePage, agent_id: UUID | None = None
    ) -> PageOf[Message | PromptPlace]:
        low, high = await self._bounds(organization_id, page)
        direction = "ASC" if page.ascending else "DESC"
        condition, agent = ("", ()) if agent_id is None else ("AND %s.agent_id = $%d", (agent_id,))
        query = _ALL % (condition and condition % ("m", 7), direction, direction)
        rows = await self._pool.fetch(query, organization_id, *low, *high, page.size + 1, *agent)
        query = _PROMPTS % (condition and condition % ("c", 5), direction)
        last = high.time + _BEFORE
        prompts = await self._pool.fetch(query, organization_id, low.time, last, page.size + 1, *agent)
        places: list[tuple[Moment, Message | PromptPlace]] = [
            *((Moment(row["created_at"], UUID(int=row["id"].int)), message_from_row(row)) for row in rows),
            *((_moment_of_prompt(row), PromptPlace(row["id"], row["agent_id"], row["created_at"])) for row in prompts),
        ]
        between = sorted((each for each in places if low < each[0] < high), key=_moment, reverse=not page.ascending)
        listed = cut(between[: page.size + 1], page, lambda each: moment_token(each[0]))
        return PageOf(tuple(item for _, item in listed.items), listed.next_token)

    async def find(self, organization_id: UUID, message_id: UUID) -> Message | None:
        row = await self._pool.fetchrow(_FIND, organization_id, _shown_as(message_id))
        return None if row is None else message_from_row(row)

    async def find_prompt(self, organization_id: UUID, message_id: UUID) -> tuple[UUID, UUID] | None:
        row = await self._prompt(organization_id, message_id)
        return None if row is None else (row["agent_id"], row["id"])

    async def _prompt(self, organization_id: UUID, message_id: UUID) -> Any:
        """Returns the row of the conversation whose compiled prompt is shown under this id; or None."""
        last = UUID(int=0)
        # Only those ids are made out of others.
        while message_id.version == 5:
            rows = await self._pool.fetch(_CONVERSATIONS, organization_id, last, _AT_ONCE)
            for row in rows:
                if system_message_id(UUID(int=row["id"].int)) == message_id:
                    return row
            if len(rows) < _AT_ONCE:
                break
            last = rows[-1]["id"]
        return None

    async def revise(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        message_id: UUID,
        change: Callable[[Message], Message],
    ) -> Message:
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_LOCK, organization_id, _shown_as(message_id), agent_id)
            if not await self._is_present(connection, organization_id, agent_id):
                raise agent_not_found(agent_id)
            if row is None:
                raise message_not_found(message_id)
            before = message_from_row(row)
            after = change(before)
            if after == before:
                return before
            await connection.execute(_KEEP, organization_id, before.id, user_id)
            row_after = message_to_row(after, 0, 0) | {"id": str(after.id)}
            await connection.execute(_REWRITE, organization_id, [row_after])
            payload = {"user_id": str(user_id)}
            await connection.execute(_FORGET_VECTOR, organization_id, before.id, row["log_id"], uuid7(), KIND, payload)
        return after

    async def add(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID, messages: Sequence[Message]
    ) -> tuple[Message, ...]:
        ids = [message.id for message in messages]
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchrow(_LOCK_HEAD, organization_id, conversation_id, agent_id) is None:
                if not await self._is_present(connection, organization_id, agent_id):
                    raise agent_not_found(agent_id)
                raise NotFound(f"Conversation conv-{conversation_id} not found", reason="CONVERSATION_NOT_FOUND")
            there = await connection.fetch(_THERE, organization_id, ids)
            if not there:
                rows = [message_to_row(message, place, 0) for place, message in enumerate(messages)]
                now = messages[-1].created_at
                await connection.execute(_ADD, organization_id, conversation_id, agent_id, rows, len(rows), now)
                there = await connection.fetch(_THERE, organization_id, ids)
        return tuple(map(message_from_row, there))

    async def _is_present(self, connection: Any, organization_id: UUID, agent_id: UUID) -> bool:
        return bool(await connection.fetchval(f"SELECT {_IS_PRESENT % '$2'}", organization_id, agent_id))

    async def _bounds(self, organization_id: UUID, page: MessagePage) -> tuple[Moment, Moment]:
        """Returns the moments between which the page lies, both left out."""
        low = _FIRST if page.after is None else await self._place(organization_id, page.after)
        high = _LAST if page.before is None else await self._place(organization_id, page.before)
        if page.token:
            place = moment_of(page.token)
            low, high = (max(low, place), high) if page.ascending else (low, min(high, place))
        return low, high

    async def _place(self, organization_id: UUID, message_id: UUID) -> Moment:
        row = await self._pool.fetchrow(_FIND, organization_id, _shown_as(message_id))
        if row is not None:
            return Moment(row["created_at"], row["id"])
        prompt = await self._prompt(organization_id, message_id)
        if prompt is None:
            raise NotFound(f"No message found with id message-{message_id}", reason="MESSAGE_NOT_FOUND")
        return _moment_of_prompt(prompt)


def _moment(place: tuple[Moment, object]) -> Moment:
    return place[0]


def _moment_of_prompt(conversation: Any) -> Moment:
    """Returns where a prompt stands: just before what may have been stored in the transaction that made it."""
    return Moment(conversation["created_at"] - _BEFORE, system_message_id(UUID(int=conversation["id"].int)))


def _shown_as(message_id: UUID) -> list[UUID]:
    """Calls that wait for the client are shown under the id before that of their message; see `messages.piece_id`."""
    return [message_id, UUID(int=min(message_id.int + 1, _LAST_ID))]
