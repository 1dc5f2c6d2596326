"""`resources.model_calls.ports.Peeks` on Postgres: what the first statement of a run reads, without what it writes."""

from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from services.agent.core.fact_log import options_to_json, settings_from_body
from services.agent.core.facts import Options
from services.agent.core.messages import Message
from services.agent.core.ports_journal import OwnedRun, TokenCounts
from services.agent.core.turn import begin_turn
from services.agent.postgres import sql
from services.agent.postgres.conversations import window
from services.common.errors import NotFound
from services.common.ids import uuid7

# A run that is never driven has no deadline that anybody sees.
_SECONDS = 60.0


class PostgresPeeks:
    """See the module."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def peek(
        self,
        organization_id: UUID,
        agent_id: UUID,
        conversation_id: UUID,
        messages: tuple[Message, ...] = (),
        options: Options | None = None,
    ) -> OwnedRun:
        """See resources.model_calls.ports.Peeks."""
        arguments = organization_id, conversation_id, options_to_json(options or Options()), agent_id
        row = await self._pool.fetchrow(sql.PEEK, *arguments)
        if row is None:
            is_default = conversation_id == agent_id
            raise NotFound(
                "Agent not found" if is_default else "Conversation not found",
                reason="AGENT_NOT_FOUND" if is_default else "CONVERSATION_NOT_FOUND",
            )
        # What is said belongs to the run that it would begin.
        run_id = next((message.run_id for message in messages if message.run_id), None) or uuid7()
        before = await window(self._pool, organization_id, conversation_id)
        return OwnedRun(
            organization_id=organization_id,
            # Nothing is made in anybody's name.
            user_id=UUID(int=0),
            run_id=run_id,
            agent_id=agent_id,
            conversation_id=conversation_id,
            fence=1,
            turn=begin_turn(run_id, settings_from_body(row["body"]), before, messages),
            seconds_left=_SECONDS,
            created_at=datetime.now(UTC),
            prompt_versions=row["prompt_versions"],
            recalled=row["next_seq"] - 1,
            counted=TokenCounts(row["estimated_tokens"], row["reported_tokens"]),
        )
