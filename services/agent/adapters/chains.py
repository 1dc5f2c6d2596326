"""Runs that wait for one another: a chain that would close, or grow too long, is refused before anybody waits."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from services.common.errors import FailedPrecondition

REASON = "RUN_CHAIN_INVALID"
MOST_ANCESTORS = 8

# Whether the run $2, which has the turn, waits for one of the runs $3: from a run to those that it began and that stand
# in a line, and from there to the run that has the turn. Who closes a chain at the same time is seen, because they take
# turns. $1 organization
_TAKE_TURNS = "SELECT pg_advisory_xact_lock(hashtextextended('run chains ' || $1::text, 0))"
_CLOSES = """
WITH RECURSIVE holding(run_id) AS (
    SELECT $2::uuid
    UNION
    SELECT head.active_run_id
    FROM holding
    JOIN agent.conversation_line line ON line.organization_id = $1
    JOIN agent.runs waiting ON waiting.organization_id = $1 AND waiting.id = line.run_id
        AND holding.run_id = ANY(waiting.ancestors) AND NOT waiting.background
    JOIN agent.conversation_heads head
        ON head.organization_id = $1 AND head.conversation_id = line.conversation_id
    WHERE head.active_run_id IS NOT NULL
)
SELECT EXISTS (SELECT 1 FROM holding WHERE run_id = ANY($3::uuid[]))
"""


def refuse_long(ancestors: Sequence[UUID]) -> None:
    """Raises FailedPrecondition (RUN_CHAIN_INVALID) for a run that too many wait for."""
    if len(ancestors) > MOST_ANCESTORS:
        sentence = f"{MOST_ANCESTORS} runs wait for one another here already; this one is not begun"
        raise FailedPrecondition(sentence, reason=REASON)


async def refuse_closed(connection: Any, organization_id: UUID, ancestors: Sequence[UUID], active: UUID) -> None:
    """Raises FailedPrecondition (RUN_CHAIN_INVALID) where the run `active` waits for one of `ancestors`.

    They would wait for each other until their time is over.
    """
    await connection.execute(_TAKE_TURNS, str(organization_id))
    if await connection.fetchval(_CLOSES, organization_id, active, list(ancestors)):
        sentence = (
            "this conversation is waiting for the very call that sends the message, so it would never be answered; "
            "send it in the background (messages/async), or to another conversation"
        )
        raise FailedPrecondition(sentence, reason=REASON)
