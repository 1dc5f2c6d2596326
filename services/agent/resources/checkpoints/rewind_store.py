"""Rewinds in Postgres: begun, finished, given up. A rewind that has begun holds its conversation as a run does."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.postgres.conversations import release
from services.agent.postgres.sql import GOES_ON
from services.agent.postgres.waiting_calls import wait_or_settle
from services.agent.resources.checkpoints import sql
from services.agent.resources.checkpoints.model import CheckpointKind, CheckpointRef, Segment, closed
from services.agent.resources.checkpoints.points import END_OF_ALL, end_of, find_point
from services.agent.resources.checkpoints.ports import (
    BegunRewind,
    NewRewind,
    PlannedBlock,
    Point,
    Rewind,
    RewoundBlock,
)
from services.agent.resources.checkpoints.rewinds import FINISH_REWIND
from services.agent.resources.checkpoints.rows import (
    arrays,
    checkpoint_from_row,
    columns,
    rewind_from_row,
    segments_from_rows,
)
from services.agent.resources.conversations.service import conversation_not_found
from services.common.errors import Aborted, AlreadyExists
from services.common.ids import uuid7

# So long the rewind is left to whoever began it.
_LEFT_SECONDS = 10.0


class PostgresRewinds:
    """`resources.checkpoints.ports.RewindStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def find(self, new: NewRewind) -> Rewind | BegunRewind | None:
        ids = (new.organization_id, new.conversation_id, new.id)
        found: Rewind | BegunRewind | None = await self.begun(*ids)
        if found is None and (row := await self._pool.fetchrow(sql.REWIND, *ids)) is not None:
            found = rewind_from_row(new.conversation_id, row)
        to = found.new.to if isinstance(found, BegunRewind) else None if found is None else found.to
        if to not in (None, new.to):
            sentence = f"The id rewind-{new.id} is that of a rewind that is not this one; use another."
            raise AlreadyExists(sentence, reason="REWIND_ID_TAKEN")
        return found

    async def begun(self, organization_id: UUID, conversation_id: UUID, rewind_id: UUID) -> BegunRewind | None:
        row = await self._pool.fetchrow(sql.BEGUN, organization_id, conversation_id, rewind_id)
        return None if row is None else _begun_from_row(row)

    async def begin(self, rewind: BegunRewind) -> None:
        new = rewind.new
        ids = (new.organization_id, new.conversation_id)
        async with self._pool.acquire() as connection, connection.transaction():
            head = await connection.fetchrow(sql.LOCK, *ids)
            if head is None:
                raise conversation_not_found(new.conversation_id)
            if head["active_run_id"] == new.id:
                return
            await _refuse_busy(connection, new.organization_id, head)
            # It may be gone since the plan was made.
            await find_point(connection, *ids, new.to)
            plan = [asdict(block) | {"block_id": str(block.block_id)} for block in rewind.plan]
            await connection.execute(
                sql.BEGIN,
                *ids,
                new.id,
                rewind.agent_id,
                *columns(new.to),
                plan,
                new.user_id,
                FINISH_REWIND,
                {"user_id": str(new.user_id)},
                _LEFT_SECONDS,
            )

    async def finish(self, rewind: BegunRewind, blocks: Sequence[RewoundBlock]) -> Rewind:
        new = rewind.new
        ids = (new.organization_id, new.conversation_id)
        async with self._pool.acquire() as connection, connection.transaction():
            head = await connection.fetchrow(sql.LOCK, *ids)
            if head is None:
                raise conversation_not_found(new.conversation_id)
            if (made := await connection.fetchrow(sql.REWIND, *ids, new.id)) is not None:
                return rewind_from_row(new.conversation_id, made)
            if head["active_run_id"] != new.id:
                await _refuse_busy(connection, new.organization_id, head)
            point = await find_point(connection, *ids, new.to)
            await _cut(connection, new, point, head["next_seq"], blocks)
            await _let_go(connection, rewind)
            return rewind_from_row(new.conversation_id, await connection.fetchrow(sql.REWIND, *ids, new.id))

    async def give_up(self, rewind: BegunRewind) -> None:
        new = rewind.new
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(sql.LOCK, new.organization_id, new.conversation_id)
            await _let_go(connection, rewind)


async def _cut(connection: Any, new: NewRewind, point: Point, next_seq: int, blocks: Sequence[RewoundBlock]) -> None:
    ids, view, end = (new.organization_id, new.conversation_id), point.view, end_of(point)
    newest = await connection.fetch(sql.LIST, *ids, *END_OF_ALL, 1)
    rows = await connection.fetch(sql.SEGMENTS, *ids)
    left = checkpoint_from_row(newest[0]).ref if newest else None
    noted = [asdict(block) | {"block_id": str(block.block_id)} for block in blocks]
    await connection.execute(sql.KEEP, *ids, new.id, *columns(new.to), *columns(left), noted, new.user_id)
    await connection.execute(sql.KEEP_SEGMENTS, *ids, new.id, *arrays(closed(segments_from_rows(rows), next_seq)))
    # A place is left out before what comes now: a turn that waited for the head looks for what is right before its own
    # messages, does not find it and reads the window once more.
    log_id, first_seq = uuid7(), end.seq + 2
    ordinal = max(row["ordinal"] for row in rows) + 1
    segments = (*point.segments, Segment(log_id, first_seq))
    await connection.execute(sql.REPLACE, *ids, *arrays(segments), ordinal)
    await connection.execute(sql.MOVE_HEAD, *ids, log_id, first_seq, ordinal + view.segment, view.seq, view.summary_id)
    await wait_or_settle(connection, *ids, may_wait=True)


async def _let_go(connection: Any, rewind: BegunRewind) -> None:
    """Ends the hold; who is next in line is taken up with the next beat of its home, or of anybody."""
    new = rewind.new
    ids = (new.organization_id, new.conversation_id, new.id)
    await connection.execute(sql.LET_GO, *ids)
    await release(connection, *ids)


async def _refuse_busy(connection: Any, organization_id: UUID, head: Mapping[str, Any]) -> None:
    active = head["active_run_id"]
    goes_on = active is not None and await connection.fetchval(GOES_ON, organization_id, active)
    if goes_on or head["waiting"]:
        raise Aborted(
            "The conversation cannot be rewound: a request is being processed for it. Wait for it or cancel it. "
            f"(run_id=run-{active})",
            reason="CONVERSATION_BUSY",
            metadata={"run_id": f"run-{active}"},
        )


def _begun_from_row(row: Mapping[str, Any]) -> BegunRewind:
    new = NewRewind(
        organization_id=row["organization_id"],
        user_id=row["created_by_id"],
        conversation_id=row["conversation_id"],
        id=row["id"],
        to=CheckpointRef(CheckpointKind(row["to_kind"]), row["to_id"]),
    )
    plan = (PlannedBlock(**(block | {"block_id": UUID(block["block_id"])})) for block in row["plan"])
    return BegunRewind(new, row["agent_id"], tuple(plan))
