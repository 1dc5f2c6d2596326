"""Old runs go, in the background: in small batches, on whichever replicas are there.

A run goes with its facts, its steps, its keys, its traces and its stream; what was said in it stays in the log. A run
that has not ended stays, and so do all of a conversation in which calls wait for the client: they say who asked. What a
provider was sent and answered, and compiled prompts that nobody uses any more, go sooner: they are large.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

# $1 age, $2 most
_RUNS = """
WITH old AS (
    SELECT r.organization_id, r.id FROM agent.runs r
    WHERE r.created_at < now() - $1::interval AND r.completed_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM agent.conversation_heads h
        WHERE h.organization_id = r.organization_id AND h.conversation_id = r.conversation_id
            AND (h.pending_message_id IS NOT NULL OR h.active_run_id = r.id))
    LIMIT $2 FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM agent.runs r USING old WHERE r.organization_id = old.organization_id AND r.id = old.id
"""
_TRACES = """
DELETE FROM agent.provider_traces WHERE (organization_id, step_id) IN (
    SELECT organization_id, step_id FROM agent.provider_traces WHERE created_at < now() - $1::interval
    LIMIT $2 FOR UPDATE SKIP LOCKED)
"""
# Not those that a conversation was told last, nor those that a step was told lately.
_PROMPTS = """
DELETE FROM agent.compiled_prompts WHERE (organization_id, agent_id, hash) IN (
    SELECT p.organization_id, p.agent_id, p.hash FROM agent.compiled_prompts p
    WHERE p.created_at < now() - $1::interval
        AND NOT EXISTS (
            SELECT FROM agent.conversations c
            JOIN agent.conversation_heads h ON h.organization_id = c.organization_id AND h.conversation_id = c.id
            WHERE c.organization_id = p.organization_id AND c.agent_id = p.agent_id AND h.prompt_hash = p.hash)
        AND NOT EXISTS (
            SELECT FROM agent.steps s
            WHERE s.organization_id = p.organization_id AND s.agent_id = p.agent_id AND s.prompt_hash = p.hash
                AND s.created_at > now() - $1::interval)
    LIMIT $2 FOR UPDATE SKIP LOCKED)
"""
# Not that of an agent as it is, nor of one that has a run now.
_SYSTEM_PROMPTS = """
DELETE FROM agent.system_prompts WHERE (organization_id, agent_id, hash) IN (
    SELECT p.organization_id, p.agent_id, p.hash FROM agent.system_prompts p
    JOIN agent.agents a ON a.organization_id = p.organization_id AND a.id = p.agent_id AND a.system <> p.text
    WHERE p.created_at < now() - $1::interval AND NOT EXISTS (
        SELECT FROM agent.runs r
        WHERE r.organization_id = p.organization_id AND r.agent_id = p.agent_id AND r.completed_at IS NULL)
    LIMIT $2 FOR UPDATE OF p SKIP LOCKED)
"""
# Runs are large: each has dozens of rows.
_RUNS_AT_ONCE, _ROWS_AT_ONCE = 100, 500
_EVERY_SECONDS = 600.0
_FIRST_SECONDS = 60.0
_BETWEEN_SECONDS = 0.2

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KeptDays:
    """How long runs, what providers were sent and answered, and prompts are kept; 0: for ever."""

    runs: int = 0
    traces: int = 0
    prompts: int = 0


class RunRetention:
    """Erases what is older than it is kept."""

    def __init__(self, pool: asyncpg.Pool, days: KeptDays) -> None:
        self._pool = pool
        rules = {
            _RUNS: (days.runs, _RUNS_AT_ONCE),
            _TRACES: (days.traces, _ROWS_AT_ONCE),
            _PROMPTS: (days.prompts, _ROWS_AT_ONCE),
            _SYSTEM_PROMPTS: (days.prompts, _ROWS_AT_ONCE),
        }
        self._rules: Mapping[str, tuple[int, int]] = {sql: rule for sql, rule in rules.items() if rule[0]}

    async def run(self) -> None:
        """Sweeps until cancelled."""
        await asyncio.sleep(random.uniform(0, _FIRST_SECONDS))
        while True:
            try:
                await self.sweep()
            except Exception:  # noqa: BLE001
                # A supervisor: a database that is away must not end the sweeping.
                _log.exception("old runs were not erased")
            await asyncio.sleep(_EVERY_SECONDS * random.uniform(0.5, 1.5))

    async def sweep(self) -> int:
        """Erases all that is old now; returns how many rows of its own kind that were."""
        swept = 0
        for statement, (days, most) in self._rules.items():
            while erased := await self._erase(statement, days, most):
                swept += erased
                await asyncio.sleep(_BETWEEN_SECONDS)
        return swept

    async def _erase(self, statement: str, days: int, most: int) -> int:
        done: str = await self._pool.execute(statement, timedelta(days=days), most)
        return int(done.rpartition(" ")[2])
