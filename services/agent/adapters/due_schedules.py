"""`resources.schedules.ports.DueSchedules`: what is due becomes a run and is planned anew, in one transaction.

So there is one run for each time, whoever dies when. Its id follows from the schedule and that time, besides: were it
begun twice, the second would find the first. A lock that another replica holds is passed by.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.agent.adapters.journal import REQUEST_KEYS, PostgresJournal
from services.agent.core.ports_journal import Successor, TurnRequest
from services.agent.core.releases import NewerRelease
from services.agent.postgres.line import input_from_line
from services.agent.postgres.waiting_calls import DuplicateRequest
from services.agent.resources.schedules.model import next_time, pause
from services.agent.resources.schedules.ports import Dispatch
from services.common.core.ceiling import ceiling_from_json
from services.common.errors import LociError, NotFound
from services.common.ids import uuid7

_CLAIM = """
SELECT s.*, now() AS now, a.deleted_at IS NULL AS alive FROM agent.schedules s
JOIN agent.agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id
WHERE s.next_at <= now() ORDER BY s.next_at LIMIT 1 FOR UPDATE OF s SKIP LOCKED
"""
# $3 when it is due next, null for never, $4 the run
_SENT = """
UPDATE agent.schedules SET due_at = coalesce($3, due_at), next_at = $3, attempts = 0, last_at = now(), last_run_id = $4,
    last_error = NULL
WHERE organization_id = $1 AND id = $2
"""
# $3 when it is tried again, null for never, $4 why, $5 attempts in a row
_FAILED = """
UPDATE agent.schedules SET next_at = $3, last_error = $4, attempts = $5 WHERE organization_id = $1 AND id = $2
"""
_WAIT = "SELECT extract(epoch FROM min(next_at) - clock_timestamp())::float8 FROM agent.schedules"
_LONGEST_ERROR = 1_000
_MOST_ATTEMPTS = 32_000

_log = logging.getLogger(__name__)


class PostgresDue:
    """Schedules whose time has come."""

    def __init__(self, pool: asyncpg.Pool, journal: PostgresJournal) -> None:
        self._pool = pool
        self._journal = journal

    async def wait_seconds(self) -> float | None:
        seconds: float | None = await self._pool.fetchval(_WAIT)
        return seconds

    async def send_next(self, seconds: float) -> Dispatch | None:
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_CLAIM)
            if row is None:
                return None
            sent = Dispatch(row["organization_id"])
            try:
                # Apart, so that what was half done by a failure is undone, and the failure is kept.
                async with connection.transaction():
                    return replace(sent, successor=await self._send(connection, row, seconds))
            except NotFound as error:
                await _fail(connection, row, error.message, ends=True)
            except LociError as error:
                await _fail(connection, row, error.message)
            except NewerRelease as error:
                # Another replica may be of that release.
                await _fail(connection, row, str(error))
            except (LookupError, TypeError, ValueError, AttributeError, asyncpg.DataError) as error:
                # It must not be the end of all that are due after it.
                _log.exception("schedule %s cannot be sent", row["id"])
                await _fail(connection, row, repr(error))
            return sent

    async def _send(self, connection: Any, row: Mapping[str, Any], seconds: float) -> Successor | None:
        """Returns the run that has the turn by this, if any. Raises LociError, NewerRelease."""
        if not row["alive"]:
            raise NotFound("The agent is deleted.", reason="AGENT_NOT_FOUND")
        run_id, following = run_of(row["id"], row["due_at"]), None
        if row["cron"] is not None:
            # All times that were missed are one.
            following = next_time(row["cron"], row["timezone"], max(row["now"], row["due_at"]))
        successor = await self._begin(connection, _request(row, run_id, seconds))
        await connection.execute(_SENT, row["organization_id"], row["id"], following, run_id)
        return successor

    async def _begin(self, connection: Any, request: TurnRequest) -> Successor | None:
        try:
            async with connection.transaction():
                return (await self._journal.accept_within(connection, request)).successor
        except DuplicateRequest:
            return None
        except asyncpg.UniqueViolationError as error:
            if error.constraint_name not in REQUEST_KEYS:
                raise
            return None


def run_of(schedule_id: UUID, due_at: datetime) -> UUID:
    """Returns the run of a schedule for a time."""
    return uuid5(schedule_id, due_at.isoformat())


def _request(row: Mapping[str, Any], run_id: UUID, seconds: float) -> TurnRequest:
    messages, options = input_from_line(row["schema_version"], row["input"], run_id)
    once = row["cron"] is None
    return TurnRequest(
        organization_id=row["organization_id"],
        user_id=row["user_id"],
        agent_id=row["agent_id"],
        conversation_id=row["agent_id"],
        run_id=run_id,
        # What is said again and again is another message each time.
        messages=tuple(replace(each, id=uuid7(), otid=each.otid if once else None) for each in messages),
        seconds=seconds,
        options=options,
        ceiling=ceiling_from_json(row["ceiling"]),
        # Nobody is there to be refused.
        on_busy="wait",
        background=True,
    )


async def _fail(connection: Any, row: Mapping[str, Any], sentence: str, *, ends: bool = False) -> None:
    attempts = min(row["attempts"] + 1, _MOST_ATTEMPTS)
    again = None if ends else row["now"] + pause(attempts)
    ids = row["organization_id"], row["id"]
    await connection.execute(_FAILED, *ids, again, sentence[:_LONGEST_ERROR], attempts)
