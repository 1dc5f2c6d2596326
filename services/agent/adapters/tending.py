"""The turns of agents that tend another's memory: begun in the transaction that ends that one's turn.

So there is one of each, whoever dies when; its id follows from the run that it is about. What goes wrong here is undone
by itself and logged: whoever talks to the agent must not notice. It costs a statement for each turn of an agent that is
tended, and a handful more when it is time to think.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.agent.core.facts import Options
from services.agent.core.messages import Message, Text
from services.agent.core.ports_journal import Acceptance, OwnedRun, Successor, TurnRequest
from services.agent.core.tending import MOST_MESSAGES, MOST_STEPS, TendingLimits, is_due, tending_message
from services.agent.postgres.rows import message_from_row
from services.agent.postgres.sql import MESSAGE_COLUMNS
from services.agent.postgres.waiting_calls import DuplicateRequest
from services.common.errors import LociError
from services.common.ids import to_public, uuid7

# The group whose members tend an agent, and one more turn of it. $1 organization, $2 agent
_COUNT = """
WITH chosen AS (
    SELECT id, (manager_settings ->> 'sleeptime_agent_frequency')::int AS frequency FROM agent.groups
    WHERE organization_id = $1 AND manager_agent_id = $2 AND manager_type = 'sleeptime'
    ORDER BY created_at DESC, id DESC LIMIT 1
), counted AS (
    INSERT INTO agent.group_progress AS p (organization_id, group_id, turns) SELECT $1, id, 1 FROM chosen
    ON CONFLICT (organization_id, group_id) DO UPDATE SET turns = p.turns + 1
    RETURNING turns, read_until
)
SELECT id, frequency, turns, read_until FROM chosen, counted
"""
# Who has no such turn before it, and tokens of a day left. $1 organization, $2 group, $3 tokens
_MEMBERS = """
SELECT m.agent_id FROM agent.group_agents m
JOIN agent.agents a ON a.organization_id = $1 AND a.id = m.agent_id AND a.deleted_at IS NULL
WHERE m.organization_id = $1 AND m.group_id = $2
    AND NOT EXISTS (
        SELECT FROM agent.conversation_line l WHERE l.organization_id = $1 AND l.conversation_id = m.agent_id)
    AND $3 > (
        SELECT coalesce(sum((r.usage ->> 'prompt_tokens')::bigint + (r.usage ->> 'completion_tokens')::bigint), 0)
        FROM agent.runs r
        WHERE r.organization_id = $1 AND r.agent_id = m.agent_id
            AND r.created_at >= date_trunc('day', now(), 'UTC') AND (r.options ->> 'tends')::boolean)
ORDER BY m.position
"""
# $1 organization, $2 agent, $3 after this time or null, $4 most
_SAID = f"""
SELECT {MESSAGE_COLUMNS} FROM agent.messages
WHERE organization_id = $1 AND agent_id = $2 AND role IN ('user', 'assistant', 'tool', 'approval')
    AND ($3::timestamptz IS NULL OR created_at > $3)
ORDER BY created_at DESC LIMIT $4
"""
_READ = "UPDATE agent.group_progress SET read_until = $3 WHERE organization_id = $1 AND group_id = $2"
# $1 organization, $2 run, $3 runs that it began
_NAME = """
UPDATE agent.runs SET usage = usage || jsonb_build_object('run_ids', $3::text[]) WHERE organization_id = $1 AND id = $2
"""

_log = logging.getLogger(__name__)

Accept = Callable[[Any, TurnRequest], Awaitable[Acceptance]]


@dataclass(frozen=True, slots=True)
class Tending:
    """The runs that were begun, and those of them whose turn it is."""

    run_ids: tuple[UUID, ...] = ()
    successors: tuple[Successor, ...] = ()


class TendingTurns:
    """Begins them. `accept`: Journal.accept in a transaction of the caller's."""

    def __init__(self, accept: Accept, limits: TendingLimits) -> None:
        self._accept = accept
        self._limits = limits

    async def begin(self, connection: Any, owned: OwnedRun) -> Tending:
        """Counts a turn, in the transaction that ends it, and begins what is due then."""
        try:
            async with connection.transaction():
                return await self._begin(connection, owned)
        except (LociError, DuplicateRequest, LookupError, TypeError, ValueError, asyncpg.DataError):
            _log.exception("nobody thinks over run %s", owned.run_id)
            return Tending()

    async def _begin(self, connection: Any, owned: OwnedRun) -> Tending:
        organization_id = owned.organization_id
        group = await connection.fetchrow(_COUNT, organization_id, owned.agent_id)
        if group is None or not is_due(group["turns"], group["frequency"]):
            return Tending()
        members = await connection.fetch(_MEMBERS, organization_id, group["id"], self._limits.tokens_per_day)
        said = await connection.fetch(_SAID, organization_id, owned.agent_id, group["read_until"], MOST_MESSAGES)
        if not members or not said:
            return Tending()
        settings = owned.turn.settings
        text = tending_message(
            settings.agent_name, list(map(message_from_row, reversed(said))), window=settings.context_window_limit
        )
        begun = [(await self._accept(connection, self._request(owned, row, text))) for row in members]
        run_ids = tuple(each.run_id for each in begun)
        await connection.execute(_READ, organization_id, group["id"], said[0]["created_at"])
        await connection.execute(_NAME, organization_id, owned.run_id, list(map(str, run_ids)))
        return Tending(run_ids, tuple(each.successor for each in begun if each.successor is not None))

    def _request(self, owned: OwnedRun, member: Mapping[str, Any], text: str) -> TurnRequest:
        agent_id = member["agent_id"]
        run_id = uuid5(owned.run_id, f"tending-{agent_id}")
        sender_id = to_public("agent", owned.agent_id)
        message = Message(uuid7(), "user", (Text(text),), datetime.now(UTC), run_id, sender_id=sender_id)
        return TurnRequest(
            organization_id=owned.organization_id,
            user_id=owned.user_id,
            ceiling=owned.ceiling,
            agent_id=agent_id,
            conversation_id=agent_id,
            run_id=run_id,
            messages=(message,),
            seconds=self._limits.seconds,
            options=Options(max_steps=MOST_STEPS, tends=True),
            on_busy="wait",
            background=True,
        )
