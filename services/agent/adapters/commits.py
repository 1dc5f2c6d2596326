"""Facts of runs are stored under their fence, and again where the answer of the database was lost."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import asyncpg

from services.agent.adapters.tending import TendingTurns
from services.agent.core.facts import Compacted, ContextOverflowed, RunStatus
from services.agent.core.messages import Message
from services.agent.core.ports_journal import Commit, CommitResult, Fenced, OwnedRun, Successor
from services.agent.core.tending import counts
from services.agent.postgres import sql
from services.agent.postgres.conversations import release
from services.agent.postgres.rows import (
    ended_columns,
    fact_rows,
    message_rows,
    pending_columns,
    step_rows,
    usage_column,
)
from services.agent.postgres.waiting_calls import decline
from services.common.database import is_lost

# So long a commit is tried again: a database that fails over takes half a minute.
_LONGEST_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


class FactCommitter:
    """Stores facts. `tending`: begins turns of those who tend an agent, where its own ends."""

    def __init__(self, pool: asyncpg.Pool, tending: TendingTurns) -> None:
        self._pool = pool
        self._tending = tending

    async def commit(self, owned: OwnedRun, commit: Commit) -> CommitResult:
        """Stores facts, their messages and steps in one transaction. Raises Fenced.

        Where the database falls away meanwhile, it is looked at until it says what became of the transaction: what a
        provider was paid for is not asked again. Raises what the driver does when that takes longer than a minute.
        """
        try:
            row, stored = await self._store(owned, commit)
        except Exception as error:
            if not is_lost(error):
                raise
            row, stored = await self._store_again(owned, commit, error)
        if commit.turn.ended is not None and row["waiting"]:
            # Lost before this, the line stands until the repair of leases.py sees it.
            return replace(stored, successor=await self._next(owned))
        return stored

    async def _store_again(
        self, owned: OwnedRun, commit: Commit, lost: Exception
    ) -> tuple[Mapping[str, Any], CommitResult]:
        until, pause = time.monotonic() + _LONGEST_SECONDS, _FIRST_PAUSE
        while time.monotonic() < until:
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            try:
                row = await self._pool.fetchrow(sql.COMMITTED, owned.organization_id, owned.run_id)
                if row is None or row["fence"] != owned.fence:
                    raise Fenced
                if row["facts"] == commit.before + len(commit.facts):
                    return row, replace(_commit_result(row), declined=row["status"] == RunStatus.CANCELLED)
                return await self._store(owned, commit)
            except Exception as error:
                if not is_lost(error):
                    raise
                lost = error
        raise lost

    async def _store(self, owned: OwnedRun, commit: Commit) -> tuple[Mapping[str, Any], CommitResult]:
        values = _commit_values(owned, commit)
        arguments, pending_id = sql.COMMIT.bind(**values), values["pending_message_id"]
        extra, tended = self._extra(owned, commit), counts(commit.turn)
        if extra or pending_id is not None or tended:
            async with self._pool.acquire() as connection, connection.transaction():
                row = await connection.fetchrow(*arguments)
                stored = _commit_result(row)
                for statement, *given in extra:
                    await connection.execute(statement, *given)
                if pending_id is not None and stored.cancel_requested:
                    # The run ended just when it was cancelled: nobody wants to be asked any more.
                    owner = owned.organization_id, owned.conversation_id, (owned.run_id,)
                    stored = replace(stored, declined=owned.run_id in await decline(connection, *owner))
                if tended:
                    begun = await self._tending.begin(connection, owned)
                    stored = replace(stored, run_ids=begun.run_ids, begun=begun.successors)
        else:
            row = await self._pool.fetchrow(*arguments)
            stored = _commit_result(row)
        return row, stored

    async def _next(self, owned: OwnedRun) -> Successor | None:
        async with self._pool.acquire() as connection, connection.transaction():
            return await release(connection, owned.organization_id, owned.conversation_id, owned.run_id)

    def _extra(self, owned: OwnedRun, commit: Commit) -> list[tuple[Any, ...]]:
        """Returns statements of the same transaction for what seldom happens."""
        ids = (owned.organization_id, owned.conversation_id)
        extra: list[tuple[Any, ...]] = []
        for fact in commit.facts:
            match fact:
                case Compacted(summary=Message(id=summary_id), kept_from=kept_from):
                    extra.append((sql.MOVE_WINDOW, *ids, kept_from, summary_id))
                case ContextOverflowed(learned=learned) if learned:
                    extra.append((sql.LEARN_WINDOW, ids[0], commit.turn.settings.model, learned))
        return extra


def _commit_values(owned: OwnedRun, commit: Commit) -> dict[str, Any]:
    """Returns what COMMIT stores."""
    turn, prompt = commit.turn, commit.prompt
    stop_reason, status, error = ended_columns(turn)
    messages, steps = message_rows(commit.facts), step_rows(commit)
    pending_id, due = pending_columns(turn)
    trace = commit.provider_trace if steps else None
    return {
        "organization_id": owned.organization_id,
        "conversation_id": owned.conversation_id,
        "run_id": owned.run_id,
        "agent_id": owned.agent_id,
        "fence": owned.fence,
        "facts": fact_rows(commit),
        "fact_count": len(commit.facts),
        "facts_before": commit.before,
        "messages": messages,
        "message_count": len(messages),
        "steps": steps,
        "prompt_hash": None if prompt is None else prompt.hash,
        "prompt_text": None if prompt is None else prompt.text,
        "prompt_versions": None if prompt is None else prompt.versions or None,
        "stop_reason": stop_reason,
        "status": status,
        "usage": usage_column(turn),
        "error": error,
        "first_token_at": commit.first_token_at,
        "pending_message_id": pending_id,
        "approval_due": due,
        "traced_step_id": None if trace is None else steps[0]["id"],
        "trace": trace,
        "estimated_tokens": commit.counted.estimated,
        "reported_tokens": commit.counted.reported,
    }


def _commit_result(row: Mapping[str, Any] | None) -> CommitResult:
    if row is None:
        raise Fenced
    return CommitResult(row["cancel_requested"], row["started_at"], row["completed_at"])
