"""Requests as they are stored: when their turn has come, or while they wait in line."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.agent.core.fact_log import options_to_json
from services.agent.core.ports_journal import TurnRequest
from services.agent.postgres import line_sql
from services.agent.postgres.line import LINE_SCHEMA_VERSION, input_to_line
from services.common.core.ceiling import ceiling_to_json


async def enter_line(connection: Any, request: TurnRequest, home_id: UUID, *, front: bool) -> None:
    """Puts a request in the line of its conversation, before all others if it is to be at the `front`."""
    await connection.execute(
        *line_sql.ENTER_LINE.bind(
            **request_values(request),
            home_id=home_id,
            input=input_to_line(request.messages, request.options),
            created_at=datetime.now(UTC),
            schema_version=LINE_SCHEMA_VERSION,
            labels=list(request.labels),
            front=front,
            background=request.background,
        )
    )


def request_values(request: TurnRequest) -> dict[str, Any]:
    """Returns what START and ENTER_LINE store of a request."""
    return {
        "organization_id": request.organization_id,
        "conversation_id": request.conversation_id,
        "run_id": request.run_id,
        "agent_id": request.agent_id,
        "user_id": request.user_id,
        "seconds": request.seconds,
        "ancestors": list(request.ancestors),
        "ceiling": ceiling_to_json(request.ceiling),
        "request_hash": request.request_hash,
        "keys": list(request.keys),
        "options": options_to_json(request.options),
    }
