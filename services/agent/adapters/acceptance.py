"""Requests come in: a run begins at once, waits in the line of its conversation, or is that of an earlier request."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.adapters.chains import refuse_closed, refuse_long
from services.agent.adapters.known_messages import KnownMessages
from services.agent.core.approvals import answers_of
from services.agent.core.fact_log import settings_from_body
from services.agent.core.facts import FIRST_FACT_VERSION
from services.agent.core.ports_journal import Acceptance, OnBusy, OwnedRun, TokenCounts, TurnRequest
from services.agent.core.releases import NewerRelease
from services.agent.core.turn import begin_turn
from services.agent.postgres import line_sql, sql
from services.agent.postgres.conversations import WINDOW_MESSAGES, promote, window
from services.agent.postgres.requests import enter_line, request_values
from services.agent.postgres.rows import input_rows
from services.agent.postgres.waiting_calls import DuplicateRequest, find_answering_run, fitting_window
from services.common.errors import Aborted, AlreadyExists, NotFound, ResourceExhausted, Unavailable

LONGEST_LINE = 32
# What a request that is there already violates: its run, the first fact of that, or one of its keys.
REQUEST_KEYS = ("runs_pkey", "facts_pkey", "run_keys_pkey")

_log = logging.getLogger(__name__)


class RequestAcceptor:
    """Accepts requests for a replica. `on_busy`: see PostgresJournal."""

    def __init__(self, pool: asyncpg.Pool, worker_id: UUID, on_busy: OnBusy | None) -> None:
        self._pool = pool
        self._worker_id = worker_id
        self._on_busy = on_busy
        self._messages = KnownMessages()

    async def accept(self, request: TurnRequest) -> Acceptance:
        """Stores a request, or finds the run of the request it repeats.

        Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND), ResourceExhausted (CONVERSATION_LINE_FULL), Aborted
        (CONVERSATION_BUSY, APPROVAL_PENDING), InvalidArgument (NO_PENDING_APPROVAL, TOOL_CALL_IDS_INVALID),
        AlreadyExists (RUN_ID_TAKEN), FailedPrecondition (RUN_CHAIN_INVALID).
        """
        refuse_long(request.ancestors)
        if request.is_retry and request.request_hash is not None:
            run_id = await self._pool.fetchval(sql.FIND_BY_HASH, request.organization_id, request.request_hash)
            if run_id is not None:
                return await self._attach(request.organization_id, run_id)
        try:
            if not (request.answers or request.background):
                row = await self._start(self._pool, request)
                if row["log_id"] is not None:
                    return await self._begun(request, row)
            async with self._pool.acquire() as connection, connection.transaction():
                return await self._accept(connection, request)
        except asyncpg.UniqueViolationError as error:
            run_id = await self._find(self._pool, request)
            if run_id is None and error.constraint_name not in REQUEST_KEYS:
                raise
        except DuplicateRequest as repeated:
            run_id = repeated.run_id
        except NewerRelease as newer:
            raise Unavailable(f"this conversation needs a newer replica: {newer}; try again") from newer
        if run_id is None:
            # It was withdrawn meanwhile, or its agent was erased.
            raise Aborted("the request that this one repeats is gone; send it again", reason="RETRY_LOST") from None
        return await self._attach(request.organization_id, run_id)

    async def accept_within(self, connection: Any, request: TurnRequest) -> Acceptance:
        """Returns the same in the caller's transaction, for a background run that repeats no other request.

        Raises DuplicateRequest besides.
        """
        refuse_long(request.ancestors)
        return await self._accept(connection, request)

    async def _begun(self, request: TurnRequest, row: Mapping[str, Any]) -> Acceptance:
        """Returns what START made of a request. A run that this replica cannot read is there all the same, and is left
        to one that can.
        """
        try:
            owned = await self._owned(self._pool, request, row)
        except NewerRelease as newer:
            _log.info("run %s is left to a newer release: %s", request.run_id, newer)
            owned = None
        return Acceptance(request.run_id, started=True, owned=owned)

    async def _attach(self, organization_id: UUID, run_id: UUID) -> Acceptance:
        await self._pool.execute(line_sql.MOVE_HOME, organization_id, run_id, self._worker_id)
        return Acceptance(run_id, started=False)

    async def _find(self, connection: Any, request: TurnRequest) -> UUID | None:
        """Returns the run that has one of the request's keys, or its id. Raises AlreadyExists (RUN_ID_TAKEN)."""
        ids = (request.run_id, request.conversation_id)
        row = await connection.fetchrow(sql.FIND_BY_KEYS, request.organization_id, list(request.keys), *ids)
        if row is None:
            return None
        if row["conversation_id"] != request.conversation_id:
            sentence = f"run-{request.run_id} is a run of another conversation; send the message under a new id."
            raise AlreadyExists(sentence, reason="RUN_ID_TAKEN")
        run_id: UUID = row["run_id"]
        return run_id

    async def _start(self, connection: Any, request: TurnRequest, *, fits: bool = False) -> Mapping[str, Any]:
        """Returns the statement that does all for an idle conversation; its row says whether it did, and when."""
        now = datetime.now(UTC)
        row: Mapping[str, Any] | None = await connection.fetchrow(
            *sql.START.bind(
                **request_values(request),
                worker_id=self._worker_id,
                messages=input_rows(request.messages),
                message_count=len(request.messages),
                schema_version=FIRST_FACT_VERSION,
                created_at=now,
                fits=fits or request.is_silent,
                most_messages=WINDOW_MESSAGES,
            )
        )
        if row is None or row["agent_id"] is None:
            raise _unknown_target(request)
        return {**row, "created_at": now}

    async def _accept(self, connection: Any, request: TurnRequest) -> Acceptance:
        """Accepts under the lock of the head, for a request that has to be compared with others, or has to wait."""
        ids = (request.organization_id, request.conversation_id)
        head = await connection.fetchrow(sql.LOCK_HEAD, *ids)
        if head is None:
            raise _unknown_target(request)
        if (active := head["active_run_id"]) is not None:
            return await self._enter_line(connection, request, active, head["waiting"])
        if (repeated := await self._find(connection, request)) is not None:
            # Before what waits is looked at: it may be this very request that made it wait.
            raise DuplicateRequest(repeated)
        _, fitting = await fitting_window(connection, *ids, request.run_id, request.messages, silent=request.is_silent)
        request = replace(request, messages=fitting)
        if request.background:
            await enter_line(connection, request, self._worker_id, front=request.answers)
            return Acceptance(request.run_id, started=True, successor=await promote(connection, *ids))
        row = await self._start(connection, request, fits=True)
        owned = await self._owned(connection, request, row)
        # The head's lock may have been waited for.
        return Acceptance(request.run_id, started=True, owned=replace(owned, came_late=True))

    async def _enter_line(self, connection: Any, request: TurnRequest, active: UUID, waiting: int) -> Acceptance:
        if (repeated := await self._find(connection, request)) is not None:
            raise DuplicateRequest(repeated)
        if answers := answers_of(request.messages):
            ids = (request.organization_id, request.conversation_id)
            if (repeated := await find_answering_run(connection, *ids, active, answers)) is not None:
                raise DuplicateRequest(repeated)
        on_busy = request.on_busy or self._on_busy
        stuck = not await connection.fetchval(sql.GOES_ON, request.organization_id, active)
        if not stuck and (busy_with := await self._rejecting_run(connection, request, active)) is not None:
            raise _conversation_busy(busy_with)
        if request.ancestors and not request.background:
            await refuse_closed(connection, request.organization_id, request.ancestors, active)
        if not stuck and await self._is_full(connection, request, waiting):
            raise ResourceExhausted(
                f"{LONGEST_LINE} requests wait for this conversation already; try again later.",
                reason="CONVERSATION_LINE_FULL",
            )
        interrupts = on_busy == "interrupt" and not stuck
        await enter_line(connection, request, self._worker_id, front=request.answers or interrupts)
        # An ended run that holds the turn is a fault; it must not hold up whoever comes next.
        ids = (request.organization_id, request.conversation_id)
        successor = await promote(connection, *ids) if stuck else None
        return Acceptance(request.run_id, started=True, successor=successor, interrupts=active if interrupts else None)

    async def _is_full(self, connection: Any, request: TurnRequest, length: int) -> bool:
        """Returns whether a line of this length takes nobody more: of those who were cancelled it takes as many."""
        if length < LONGEST_LINE or length >= 2 * LONGEST_LINE:
            return length >= LONGEST_LINE
        ids = (request.organization_id, request.conversation_id)
        return bool(await connection.fetchval(line_sql.COUNT_WAITING, *ids) >= LONGEST_LINE)

    async def _rejecting_run(self, connection: Any, request: TurnRequest, active: UUID) -> UUID | None:
        """Returns the run because of which a request is not let into the line."""
        match request.on_busy or self._on_busy:
            case "reject":
                return active
            case None if request.options.locks:
                ids = (request.organization_id, request.conversation_id)
                locking: UUID | None = await connection.fetchval(line_sql.LOCKING_RUN, *ids, active)
                return locking
            case _:
                return None

    async def _owned(self, connection: Any, request: TurnRequest, row: Mapping[str, Any]) -> OwnedRun:
        settings, first_seq = settings_from_body(row["body"]), row["first_seq"]
        before = self._messages.read(reversed(row["shown"] or ()))
        came_late = bool(before) and before[-1].created_at >= row["created_at"]
        if first_seq > 1 and first_seq - 1 not in [message.seq for message in before]:
            came_late = True
            # The turn before this one ended while we waited for the head: what it stored came after we had looked.
            now = await window(connection, request.organization_id, request.conversation_id)
            before = tuple(message for message in now if message.run_id != request.run_id)
        return OwnedRun(
            came_late=came_late,
            organization_id=request.organization_id,
            user_id=request.user_id,
            run_id=request.run_id,
            agent_id=request.agent_id,
            conversation_id=request.conversation_id,
            fence=1,
            turn=begin_turn(request.run_id, settings, before, request.messages),
            seconds_left=request.seconds,
            created_at=row["created_at"],
            ancestors=request.ancestors,
            ceiling=request.ceiling,
            prompt_versions=row["prompt_versions"],
            recalled=first_seq - 1,
            counted=TokenCounts(row["estimated_tokens"], row["reported_tokens"]),
        )


def _unknown_target(request: TurnRequest) -> NotFound:
    if request.conversation_id == request.agent_id:
        return NotFound("Agent not found", reason="AGENT_NOT_FOUND")
    return NotFound("Conversation not found", reason="CONVERSATION_NOT_FOUND")


def _conversation_busy(active: UUID) -> Aborted:
    return Aborted(
        "Cannot send a new message: another request is currently being processed for this conversation. "
        f"Please wait for it to complete. (run_id=run-{active})",
        reason="CONVERSATION_BUSY",
        metadata={"run_id": f"run-{active}"},
    )
