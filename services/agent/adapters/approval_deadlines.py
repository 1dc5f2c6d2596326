"""Calls that waited too long for the client are answered by their rules: a run of their conversation begins with that.

Every replica looks for them with each beat. The lock of the conversation's head orders them and the client, so the
first answer counts, and while such a run goes on there is no other. What a beat cannot read does not hold up the rest.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.agent.core.approval_timeouts import due_at, overdue_answers
from services.agent.core.approvals import pending_message, waiting_runs
from services.agent.core.fact_log import settings_from_body
from services.agent.core.facts import SCHEMA_VERSION
from services.agent.core.messages import Decision, Message
from services.agent.core.ports_journal import Successor, TurnRequest
from services.agent.postgres.conversations import promote, window
from services.agent.postgres.requests import enter_line
from services.common.core.ceiling import ceiling_from_json
from services.common.ids import uuid7

_log = logging.getLogger(__name__)

OVERDUE = """
SELECT organization_id, conversation_id, now() AS now FROM agent.conversation_heads
WHERE approval_due <= now() AND active_run_id IS NULL
ORDER BY approval_due LIMIT 1 FOR UPDATE SKIP LOCKED
"""

# The run that ended because its calls wait, unless its conversation is gone. $1 organization, $2 run, $3 conversation
_ASKING = """
SELECT c.agent_id, r.user_id, r.ceiling, f.schema_version, f.body,
       extract(epoch FROM r.deadline - r.created_at)::float8 AS seconds
FROM agent.runs r
JOIN agent.facts f ON f.organization_id = $1 AND f.run_id = r.id AND f.number = 1
JOIN agent.conversations c ON c.organization_id = $1 AND c.id = $3 AND c.deleted_at IS NULL
JOIN agent.agents a ON a.organization_id = $1 AND a.id = c.agent_id AND a.deleted_at IS NULL
WHERE r.organization_id = $1 AND r.id = $2
"""

# $1 organization, $2 conversation, $3 when to look again
_LOOK_AGAIN = (
    "UPDATE agent.conversation_heads SET approval_due = $3 WHERE organization_id = $1 AND conversation_id = $2"
)
# What a newer release wrote is left to it for so long, and so long the run that begins may wait to be driven: were it
# given up, another begins.
_POSTPONE = """
UPDATE agent.conversation_heads SET approval_due = clock_timestamp() + interval '1 minute'
WHERE organization_id = $1 AND conversation_id = $2
"""
_IS_THERE = "SELECT EXISTS (SELECT FROM agent.runs WHERE organization_id = $1 AND id = $2)"
# What reading the facts and the messages of a newer release may raise.
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)


async def answer_overdue(pool: asyncpg.Pool, worker_id: UUID) -> list[tuple[UUID, Successor]]:
    """Begins the runs that are due; each with its organization and the replica that shall drive it."""
    begun: list[tuple[UUID, Successor]] = []
    while True:
        async with pool.acquire() as connection, connection.transaction():
            head = await connection.fetchrow(OVERDUE)
            if head is None:
                return begun
            ids = (head["organization_id"], head["conversation_id"])
            try:
                successor = await _answer(connection, head, worker_id)
            except _UNREADABLE as error:
                _log.warning("calls that wait in %s cannot be read: %r", head["conversation_id"], error)
                await connection.execute(_POSTPONE, *ids)
            else:
                begun += [] if successor is None else [(ids[0], successor)]


async def _answer(connection: Any, head: Mapping[str, Any], worker_id: UUID) -> Successor | None:
    ids = (head["organization_id"], head["conversation_id"])
    history = await window(connection, *ids)
    pending = pending_message(history)
    asking_id = None if pending is None else next(reversed(waiting_runs(history, pending)), None)
    asking = None if asking_id is None else await connection.fetchrow(_ASKING, ids[0], asking_id, ids[1])
    if pending is None or asking_id is None or asking is None:
        await connection.execute(_LOOK_AGAIN, *ids, None)
        return None
    if asking["schema_version"] > SCHEMA_VERSION:
        raise ValueError(f"they were made by a release that writes schema version {asking['schema_version']}")
    rules = settings_from_body(asking["body"]).tool_rules
    decisions = overdue_answers(history, pending, rules, head["now"])
    if not decisions:
        await connection.execute(_LOOK_AGAIN, *ids, due_at(history, pending, rules))
        return None
    await connection.execute(_POSTPONE, *ids)
    run_id = uuid5(asking_id, "timeout")
    if await connection.fetchval(_IS_THERE, ids[0], run_id):
        # It was given up before it had taken its answer: the calls wait still.
        run_id = uuid7()
    await enter_line(connection, _request(ids, run_id, asking, decisions, head["now"]), worker_id, front=True)
    return await promote(connection, *ids)


def _request(
    ids: tuple[UUID, UUID], run_id: UUID, asking: Mapping[str, Any], decisions: tuple[Decision, ...], now: datetime
) -> TurnRequest:
    """Returns a background run with the options of the one that waited: its model, its limits, its client's tools."""
    return TurnRequest(
        organization_id=ids[0],
        user_id=asking["user_id"],
        agent_id=asking["agent_id"],
        conversation_id=ids[1],
        run_id=run_id,
        messages=(Message(uuid7(), "approval", decisions, now, run_id),),
        seconds=asking["seconds"],
        options=settings_from_body(asking["body"]).options,
        ceiling=ceiling_from_json(asking["ceiling"]),
        background=True,
    )
