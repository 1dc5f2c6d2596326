"""The journal in Postgres: acceptance of requests, facts under a fence, what readers see, cancels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.adapters import sql
from services.agent.adapters.conversations import Successor, promote, window
from services.agent.adapters.line import LINE_SCHEMA_VERSION, messages_to_line
from services.agent.adapters.rows import (
    ended_columns,
    fact_rows,
    input_rows,
    message_rows,
    replay,
    settings_from_row,
    step_rows,
    usage_column,
)
from services.agent.events import Ended, Event
from services.agent.fact_log import settings_to_json
from services.agent.messages import Message
from services.agent.ports import Commit, Fenced, Owned, Stored
from services.agent.turn import SCHEMA_VERSION, Settings, Turn
from services.common.errors import Aborted, NotFound, ResourceExhausted

LONGEST_LINE = 32


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request for a turn. `keys`: the otids' digest and the idempotency key; equal keys are one request."""

    organization_id: UUID
    user_id: UUID
    agent_id: UUID
    conversation_id: UUID
    run_id: UUID
    messages: tuple[Message, ...]
    max_steps: int
    seconds: float
    keys: tuple[str, ...] = ()
    request_hash: bytes | None = None
    is_retry: bool = False
    ancestors: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Accepted:
    """What became of a request. `owned` is set when its turn came at once; `started` is False for a retry.

    `successor` is a run of the conversation whose turn it turned out to be.
    """

    run_id: UUID
    started: bool
    owned: Owned | None = None
    successor: Successor | None = None


class _Repeated(Exception):
    """The request is there already; the transaction is rolled back."""


class PostgresJournal:
    """The run's log. `reject_when_busy` answers ABORTED instead of letting requests wait in line."""

    def __init__(self, pool: asyncpg.Pool, worker_id: UUID, *, reject_when_busy: bool = False) -> None:
        self._pool = pool
        self.worker_id = worker_id
        self._reject_when_busy = reject_when_busy

    async def accept(self, request: TurnRequest) -> Accepted:
        """Stores a request, or finds the run of the request it repeats.

        Raises NotFound (AGENT_NOT_FOUND), ResourceExhausted (CONVERSATION_LINE_FULL), Aborted
        (CONVERSATION_BUSY).
        """
        if request.is_retry and request.request_hash is not None:
            run_id = await self._pool.fetchval(sql.FIND_BY_HASH, request.organization_id, request.request_hash)
            if run_id is not None:
                return await self._attach(request.organization_id, run_id)
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                return await self._accept(connection, request)
        except _Repeated:
            run_id = await self._find(self._pool, request)
            if run_id is None:
                # It was withdrawn meanwhile, or its agent was erased.
                raise Aborted("the request that this one repeats is gone; send it again", reason="RETRY_LOST") from None
            return await self._attach(request.organization_id, run_id)

    async def _attach(self, organization_id: UUID, run_id: UUID) -> Accepted:
        await self._pool.execute(sql.MOVE_HOME, organization_id, run_id, self.worker_id)
        return Accepted(run_id, started=False)

    async def _find(self, connection: Any, request: TurnRequest) -> UUID | None:
        """The run that has one of the request's keys, or its id."""
        run_id: UUID | None = await connection.fetchval(
            sql.FIND_BY_KEYS, request.organization_id, list(request.keys), request.run_id
        )
        return run_id

    async def _accept(self, connection: Any, request: TurnRequest) -> Accepted:
        ids = (request.organization_id, request.conversation_id, request.run_id)
        head = await connection.fetchrow(sql.CLAIM_HEAD, *ids, len(request.messages))
        if head is None or head["agent_id"] != request.agent_id:
            raise _nobody(request)
        if head["active_run_id"] is not None:
            return await self._enter_line(connection, request, head)
        now = datetime.now(UTC)
        settings = settings_from_row(head, request.max_steps)
        inserted = await connection.fetchrow(
            sql.START,
            *self._of_request(request),
            {"settings": settings_to_json(settings)},
            input_rows(request.messages),
            head["log_id"],
            head["first_seq"],
            SCHEMA_VERSION,
            now,
        )
        _check_first(inserted, request)
        history = await window(connection, request.organization_id, request.conversation_id)
        return Accepted(request.run_id, started=True, owned=_owned(request, head, settings, history, now))

    def _of_request(self, request: TurnRequest) -> tuple[Any, ...]:
        """The parameters that START and ENTER_LINE share: $1 to $10."""
        return (
            request.organization_id,
            request.run_id,
            request.agent_id,
            request.conversation_id,
            request.user_id,
            self.worker_id,
            request.seconds,
            list(request.ancestors),
            request.request_hash,
            list(request.keys),
        )

    async def _enter_line(self, connection: Any, request: TurnRequest, head: Mapping[str, Any]) -> Accepted:
        active = head["active_run_id"]
        if await self._find(connection, request) is not None:
            raise _Repeated
        stuck = await connection.fetchval(sql.RUN_STATUS, request.organization_id, active) != "running"
        if self._reject_when_busy and not stuck:
            raise _busy(active)
        if head["waiting"] > LONGEST_LINE and not stuck:
            raise ResourceExhausted(
                f"{LONGEST_LINE} requests wait for this conversation already; try again later.",
                reason="CONVERSATION_LINE_FULL",
            )
        entered = await connection.fetchrow(
            sql.ENTER_LINE,
            *self._of_request(request),
            messages_to_line(request.messages, request.max_steps),
            datetime.now(UTC),
            LINE_SCHEMA_VERSION,
        )
        _check_first(entered, request)
        # An ended run that holds the turn is a fault; it must not hold up whoever comes next.
        ids = (request.organization_id, request.conversation_id)
        return Accepted(request.run_id, started=True, successor=await promote(connection, *ids) if stuck else None)

    async def commit(self, owned: Owned, commit: Commit) -> Stored:
        """Stores facts, their messages and steps in one transaction. Raises Fenced."""
        turn, prompt = commit.turn, commit.prompt
        stop_reason, status, error = ended_columns(turn)
        messages = message_rows(commit.facts)
        arguments = (
            owned.organization_id,
            owned.run_id,
            owned.fence,
            owned.conversation_id,
            owned.agent_id,
            fact_rows(commit),
            messages,
            len(messages),
            step_rows(commit),
            None if prompt is None else prompt.hash,
            None if prompt is None else prompt.text,
            None if prompt is None else prompt.versions or None,
            stop_reason,
            status,
            usage_column(turn),
            error,
            commit.first_token_at,
            len(commit.facts),
        )
        if turn.ended is None:
            return _stored(await self._pool.fetchrow(sql.COMMIT, *arguments))
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(sql.COMMIT, *arguments)
            stored = _stored(row)
            if row["waiting"]:
                return replace(
                    stored, successor=await promote(connection, owned.organization_id, owned.conversation_id)
                )
            return stored

    # Readers -------------------------------------------------------------------------------------------

    async def events(self, organization_id: UUID, run_id: UUID, after: int) -> list[Event]:
        """What a run's stored facts are shown as, from a position on, and its end. Raises NotFound (RUN_NOT_FOUND)."""
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            run = await connection.fetchrow(sql.RUN, organization_id, run_id)
            if run is None:
                raise NotFound(f"there is no run run-{run_id}", reason="RUN_NOT_FOUND")
            messages = await connection.fetch(sql.RUN_MESSAGES, organization_id, run_id)
            facts = await connection.fetch(sql.FACTS, organization_id, run_id)
        events = replay(run, facts, messages)
        return [event for event in events if event.sequence > after or isinstance(event, Ended)]

    # Cancel --------------------------------------------------------------------------------------------

    async def cancel(self, organization_id: UUID, runs: Sequence[tuple[UUID, UUID]]) -> list[UUID]:
        """Asks runs, given with their conversations, to stop; those in line end at once. The ids it reached."""
        run_ids = [run_id for run_id, _ in runs]
        reached = {
            run_id
            for run_id, conversation_id in runs
            if await self._leave_line(organization_id, conversation_id, run_id, None)
        }
        # After the line: a run that was in it when we looked may have got its turn since.
        reached |= {row["id"] for row in await self._pool.fetch(sql.CANCEL_RUNNING, organization_id, run_ids)}
        return [run_id for run_id in run_ids if run_id in reached]

    async def withdraw(self, organization_id: UUID, conversation_id: UUID, run_id: UUID) -> None:
        """Takes a request out of its line whose client is gone, unless it has begun or its reader is elsewhere."""
        await self._leave_line(organization_id, conversation_id, run_id, self.worker_id)

    async def _leave_line(
        self, organization_id: UUID, conversation_id: UUID, run_id: UUID, home_id: UUID | None
    ) -> bool:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(sql.LOCK_HEAD, organization_id, conversation_id)
            gone = await connection.fetchval(sql.CANCEL_WAITING, organization_id, conversation_id, run_id, home_id)
            if gone is not None and home_id is not None:
                await connection.execute(sql.FORGET_REQUEST, organization_id, run_id)
            return gone is not None


def _owned(
    request: TurnRequest,
    head: Mapping[str, Any],
    settings: Settings,
    history: tuple[Message, ...],
    now: datetime,
) -> Owned:
    return Owned(
        organization_id=request.organization_id,
        user_id=request.user_id,
        run_id=request.run_id,
        agent_id=request.agent_id,
        conversation_id=request.conversation_id,
        fence=1,
        turn=Turn(request.run_id, settings, history=history),
        seconds_left=request.seconds,
        created_at=now,
        ancestors=request.ancestors,
        prompt_versions=head["prompt_versions"],
        recalled=max(0, len(history) - len(request.messages)),
    )


def _check_first(inserted: Mapping[str, Any], request: TurnRequest) -> None:
    if inserted["runs"] == 0 or inserted["keys"] < len(request.keys):
        raise _Repeated


def _stored(row: Mapping[str, Any] | None) -> Stored:
    if row is None:
        raise Fenced
    return Stored(row["cancel_requested"], row["started_at"], row["completed_at"])


def _nobody(request: TurnRequest) -> NotFound:
    if request.conversation_id == request.agent_id:
        return NotFound("Agent not found", reason="AGENT_NOT_FOUND")
    return NotFound("Conversation not found", reason="CONVERSATION_NOT_FOUND")


def _busy(active: UUID) -> Aborted:
    return Aborted(
        "Cannot send a new message: another request is currently being processed for this conversation. "
        f"Please wait for it to complete. (run_id=run-{active})",
        reason="CONVERSATION_BUSY",
        metadata={"run_id": f"run-{active}"},
    )
