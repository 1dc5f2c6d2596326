"""Checkpoints in Postgres: listed, gone back to, forked from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.agent.core.page_tokens import Place, place_of, place_token
from services.agent.postgres.waiting_calls import wait_or_settle
from services.agent.resources.checkpoints import sql
from services.agent.resources.checkpoints.model import (
    Checkpoint,
    CheckpointKind,
    CheckpointRef,
    Segment,
    View,
    closed,
    cut_at,
)
from services.agent.resources.checkpoints.ports import AgentFork, Inheritance, NewRewind, Point, Rewind, RewoundBlock
from services.agent.resources.checkpoints.rows import (
    arrays,
    checkpoint_from_row,
    columns,
    rewind_from_row,
    segments_from_rows,
)
from services.agent.resources.conversations.model import Conversation
from services.agent.resources.conversations.ports import NewConversation
from services.agent.resources.conversations.rows import conversation_from_row
from services.agent.resources.conversations.service import conversation_not_found
from services.common.core.paging import Moment, Page, PageOf, cut, moment_of, moment_token
from services.common.errors import Aborted, AlreadyExists, NotFound
from services.common.ids import to_public, uuid7

_PREFIXES = {CheckpointKind.INPUT: "message", CheckpointKind.STEP: "step", CheckpointKind.RUN: "run"}
_END = Place(2**31 - 1, 0)
# What a conversation does not show any more is before all that it shows.
_BEHIND = -1

Restore = Callable[[Point], Awaitable[Sequence[RewoundBlock]]]


class PostgresCheckpoints:
    """`resources.checkpoints.ports.CheckpointStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def list(
        self,
        organization_id: UUID,
        conversation_id: UUID,
        *,
        size: int,
        token: str = "",
        after: Checkpoint | None = None,
    ) -> PageOf[Checkpoint]:
        before = min(place_of(token) if token else _END, _END if after is None else Place(*after.place))
        rows = await self._pool.fetch(sql.LIST, organization_id, conversation_id, *before, size + 1)
        return cut([checkpoint_from_row(row) for row in rows], Page(size), lambda each: place_token(Place(*each.place)))

    async def find(self, organization_id: UUID, conversation_id: UUID, ref: CheckpointRef) -> Point:
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            return await _find(connection, organization_id, conversation_id, ref)

    async def rewind(self, new: NewRewind, restore: Restore) -> Rewind:
        ids = (new.organization_id, new.conversation_id)
        async with self._pool.acquire() as connection, connection.transaction():
            head = await connection.fetchrow(sql.LOCK, *ids)
            if head is None:
                raise conversation_not_found(new.conversation_id)
            if (rewind := await connection.fetchrow(sql.REWIND, *ids, new.id)) is not None:
                return _same(new, rewind_from_row(new.conversation_id, rewind))
            await _refuse_busy(connection, new.organization_id, head)
            point = await _find(connection, *ids, new.to)
            newest = await connection.fetch(sql.LIST, *ids, *_END, 1)
            await self._cut(connection, new, point, head["next_seq"], await restore(point), newest)
            return rewind_from_row(new.conversation_id, await connection.fetchrow(sql.REWIND, *ids, new.id))

    async def _cut(
        self,
        connection: Any,
        new: NewRewind,
        point: Point,
        next_seq: int,
        blocks: Sequence[RewoundBlock],
        newest: Sequence[Any],
    ) -> None:
        ids, view, end = (new.organization_id, new.conversation_id), point.view, _end(point)
        rows = await connection.fetch(sql.SEGMENTS, *ids)
        left = checkpoint_from_row(newest[0]).ref if newest else None
        noted = [asdict(block) | {"block_id": str(block.block_id)} for block in blocks]
        await connection.execute(sql.KEEP, *ids, new.id, *columns(new.to), *columns(left), noted, new.user_id)
        await connection.execute(sql.KEEP_SEGMENTS, *ids, new.id, *arrays(closed(segments_from_rows(rows), next_seq)))
        # A place is left out before what comes now: a turn that waited for the head looks for what is right before
        # its own messages, does not find it and reads the window once more.
        log_id, first_seq = uuid7(), end.seq + 2
        ordinal = max(row["ordinal"] for row in rows) + 1
        segments = (*point.segments, Segment(log_id, first_seq))
        await connection.execute(sql.REPLACE, *ids, *arrays(segments), ordinal)
        await connection.execute(
            sql.MOVE_HEAD, *ids, log_id, first_seq, ordinal + view.segment, view.seq, view.summary_id
        )
        await wait_or_settle(connection, *ids, may_wait=True)

    async def rewinds(self, organization_id: UUID, conversation_id: UUID, *, size: int, token: str) -> PageOf[Rewind]:
        last = tuple(moment_of(token)) if token else (None, None)
        rows = await self._pool.fetch(sql.REWINDS, organization_id, conversation_id, *last, size + 1)
        listed = [rewind_from_row(conversation_id, row) for row in rows]
        return cut(listed, Page(size), lambda each: moment_token(Moment(each.created_at, each.id)))

    async def fork(
        self, new: NewConversation, source_id: UUID, point: Point, *, reserved: bool, hidden: bool
    ) -> Conversation | None:
        statement = sql.FORK_CONVERSATION.bind(
            **_beginning(new.organization_id, point),
            source_id=source_id,
            reservation_id=reservation(new.id) if reserved else None,
            id=new.id,
            user_id=new.user_id,
            isolated_labels=list(new.isolated_labels),
            hidden=hidden,
        )
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(*statement)
            if row is not None:
                await wait_or_settle(connection, new.organization_id, new.id, may_wait=True)
        return None if row is None else conversation_from_row(row)

    async def fork_agent(self, fork: AgentFork, point: Point) -> bool:
        inheritance = fork.inheritance
        statement = sql.FORK_AGENT.bind(
            **_beginning(fork.organization_id, point),
            source_id=fork.conversation_id,
            reservation_id=reservation(fork.id),
            id=fork.id,
            user_id=fork.user_id,
            name=fork.name,
            message_id=inheritance.message_id,
            block_ids=list(inheritance.block_ids),
            archive_ids=list(inheritance.archive_ids),
        )
        async with self._pool.acquire() as connection, connection.transaction():
            agent_id = await connection.fetchval(*statement)
            if agent_id is not None:
                await wait_or_settle(connection, fork.organization_id, fork.id, may_wait=False)
        return agent_id is not None

    async def inheritance(self, organization_id: UUID, agent_id: UUID) -> Inheritance | None:
        row = await self._pool.fetchrow(sql.FORKED, organization_id, agent_id)
        return None if row is None else Inheritance(row[0], tuple(row[1]), tuple(row[2]))


def reservation(new_id: UUID) -> UUID:
    """Returns the id of the order that sweeps the parts of a new agent or conversation that never came to be."""
    return uuid5(new_id, "reservation")


async def _find(connection: Any, organization_id: UUID, conversation_id: UUID, ref: CheckpointRef) -> Point:
    ends = [(row["log_id"], row["seq"]) for row in await connection.fetch(sql.FIND[ref.kind], organization_id, ref.id)]
    rows = await connection.fetch(sql.SEGMENTS, organization_id, conversation_id)
    segments, ordinal = _longest(segments_from_rows(rows), ends), _BEHIND
    if segments:
        ordinal = rows[len(segments) - 1]["ordinal"]
    for end in ends if not segments else ():
        left = await connection.fetch(sql.LEFT_BEHIND, organization_id, conversation_id, *end)
        segments = segments or _longest(segments_from_rows(left), [end])
    if not segments:
        public = to_public(_PREFIXES[ref.kind], ref.id)
        raise NotFound(f"This conversation has no checkpoint {public}", reason="CHECKPOINT_NOT_FOUND")
    last = segments[-1]
    row = await connection.fetchrow(sql.DETAILS, organization_id, last.log_id, last.to_seq, ref.kind)
    view = await connection.fetchrow(sql.VIEW, organization_id, *arrays(segments))
    checkpoint = checkpoint_from_row(row)
    checkpoint = replace(checkpoint, place=Place(ordinal, segments[-1].to_seq or 0))
    return Point(checkpoint, segments, View() if view is None else View(*view))


def _longest(segments: Sequence[Segment], ends: Sequence[tuple[UUID, int]]) -> tuple[Segment, ...]:
    """Returns the ranges of logs up to the last of these places; none where none is shown."""
    ranges = [before for end in ends if (before := cut_at(segments, *end)) is not None]
    return max(ranges, key=len, default=())


async def _refuse_busy(connection: Any, organization_id: UUID, head: Mapping[str, Any]) -> None:
    active = head["active_run_id"]
    goes_on = active is not None and await connection.fetchval(sql.GOES_ON, organization_id, active)
    if goes_on or head["waiting"]:
        raise Aborted(
            "The conversation cannot be rewound: a request is being processed for it. Wait for it or cancel it. "
            f"(run_id=run-{active})",
            reason="CONVERSATION_BUSY",
            metadata={"run_id": f"run-{active}"},
        )


def _same(new: NewRewind, rewind: Rewind) -> Rewind:
    if rewind.to != new.to:
        sentence = f"The id rewind-{new.id} is that of a rewind that is not this one; use another."
        raise AlreadyExists(sentence, reason="REWIND_ID_TAKEN")
    return rewind


def _end(point: Point) -> Place:
    """Returns the last message's place among the point's own segments."""
    return Place(len(point.segments) - 1, point.segments[-1].to_seq or 0)


def _beginning(organization_id: UUID, point: Point) -> dict[str, Any]:
    """Returns the parameters of how a fork begins."""
    logs, firsts, lasts = arrays(point.segments)
    return {
        "organization_id": organization_id,
        "logs": logs,
        "firsts": firsts,
        "lasts": lasts,
        "log_id": uuid7(),
        "first_seq": _end(point).seq + 1,
        "window_segment": point.view.segment,
        "window_seq": point.view.seq,
        "summary_id": point.view.summary_id,
    }
