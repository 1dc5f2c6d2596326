"""The output of running calls, on Postgres."""

from collections.abc import Sequence
from typing import Literal
from uuid import UUID

import asyncpg

from services.tool_runner.core.job import Output
from services.tool_runner.core.model import State
from services.tool_runner.database import DatabasePool
from services.tool_runner.executions.ports import CallId

_NUMBERS: dict[Literal["stdout", "stderr"], int] = {"stdout": 1, "stderr": 2}
_STREAMS = {number: stream for stream, number in _NUMBERS.items()}

_ADD = f"""
INSERT INTO tool_runner.outputs (organization_id, call_key, sequence, stream, text)
SELECT $1, $2, p.sequence, p.stream, p.text
FROM unnest($4::bigint[], $5::smallint[], $6::text[]) AS p (sequence, stream, text)
WHERE EXISTS (
    SELECT FROM tool_runner.receipts
    WHERE organization_id = $1 AND call_key = $2 AND owner_id = $3 AND state = {State.STARTED:d})
ON CONFLICT (organization_id, call_key, sequence) DO NOTHING
"""
_AFTER = """
SELECT sequence, stream, text FROM tool_runner.outputs
WHERE organization_id = $1 AND call_key = $2 AND sequence > $3
ORDER BY sequence
"""


class PostgresOutputs:
    """`ports.OutputStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = DatabasePool(pool)

    async def add(self, call: CallId, owner_id: UUID, pieces: Sequence[Output]) -> None:
        sequences = [piece.sequence for piece in pieces]
        streams, texts = [_NUMBERS[piece.stream] for piece in pieces], [piece.text for piece in pieces]
        await self._pool.execute(_ADD, *call, owner_id, sequences, streams, texts)

    async def after(self, call: CallId, sequence: int) -> list[Output]:
        rows = await self._pool.fetch(_AFTER, *call, sequence)
        return [Output(row["sequence"], _STREAMS[row["stream"]], row["text"]) for row in rows]
