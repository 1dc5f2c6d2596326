"""The journal in Postgres: acceptance of requests, facts under a fence, what readers see, cancels."""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.adapters.chains import refuse_closed, refuse_long
from services.agent.adapters.known_messages import KnownMessages
from services.agent.adapters.tending import TendingTurns
from services.agent.core.approvals import answers_of
from services.agent.core.events import Ended, Event
from services.agent.core.fact_log import options_to_json, settings_from_body
from services.agent.core.facts import FIRST_FACT_VERSION, Compacted, ContextOverflowed, RunStatus
from services.agent.core.messages import Message
from services.agent.core.ports_journal import (
    Acceptance,
    Commit,
    CommitResult,
    Fenced,
    OnBusy,
    OwnedRun,
    Successor,
    TokenCounts,
    TurnRequest,
)
from services.agent.core.releases import NewerRelease
from services.agent.core.tending import TendingLimits, counts
from services.agent.core.turn import begin_turn
from services.agent.postgres import sql
from services.agent.postgres.conversations import WINDOW_MESSAGES, promote, release, window
from services.agent.postgres.line import LINE_SCHEMA_VERSION, input_to_line
from services.agent.postgres.rows import (
    ended_columns,
    fact_rows,
    input_rows,
    message_rows,
    pending_columns,
    replay,
    step_rows,
    usage_column,
)
from services.agent.postgres.waiting_calls import DuplicateRequest, decline, find_answering_run, fitting_window
from services.common.core.ceiling import ceiling_to_json
from services.common.database import is_lost
from services.common.errors import Aborted, AlreadyExists, NotFound, ResourceExhausted, Unavailable

LONGEST_LINE = 32
# So long a commit is tried again: a database that fails over takes half a minute.
_COMMIT_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
# What a request that is there already violates: its run, the first fact of that, or one of its keys.
REQUEST_KEYS = ("runs_pkey", "facts_pkey", "run_keys_pkey")

_log = logging.getLogger(__name__)


async def enter_line(connection: Any, request: TurnRequest, home_id: UUID, *, front: bool) -> None:
    """Puts a request in the line of its conversation, before all others if it is to be at the `front`."""
    await connection.execute(
        *sql.ENTER_LINE.bind(
            **_request_values(request),
            home_id=home_id,
            input=input_to_line(request.messages, request.options),
            created_at=datetime.now(UTC),
            schema_version=LINE_SCHEMA_VERSION,
            labels=list(request.labels),
            front=front,
            background=request.background,
        )
    )


class PostgresJournal:
    """The run's log. `on_busy`: what becomes of a request for a busy conversation that says nothing of it; None: it is
    rejected where both lock the conversation, and waits elsewhere. `tending`: see TendingLimits.
    """

    def __init__(
        self,
        pool: asyncpg.Pool,
        worker_id: UUID,
        *,
        on_busy: OnBusy | None = None,
        tending: TendingLimits | None = None,
    ) -> None:
        self._pool = pool
        self.worker_id = worker_id
        self._on_busy = on_busy
        self._tending = TendingTurns(self.accept_within, tending or TendingLimits())
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
        await self._pool.execute(sql.MOVE_HOME, organization_id, run_id, self.worker_id)
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
                **_request_values(request),
                worker_id=self.worker_id,
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
            await enter_line(connection, request, self.worker_id, front=request.answers)
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
        if waiting >= LONGEST_LINE and not stuck:
            raise ResourceExhausted(
                f"{LONGEST_LINE} requests wait for this conversation already; try again later.",
                reason="CONVERSATION_LINE_FULL",
            )
        interrupts = on_busy == "interrupt" and not stuck
        await enter_line(connection, request, self.worker_id, front=request.answers or interrupts)
        # An ended run that holds the turn is a fault; it must not hold up whoever comes next.
        ids = (request.organization_id, request.conversation_id)
        successor = await promote(connection, *ids) if stuck else None
        return Acceptance(request.run_id, started=True, successor=successor, interrupts=active if interrupts else None)

    async def _rejecting_run(self, connection: Any, request: TurnRequest, active: UUID) -> UUID | None:
        """Returns the run because of which a request is not let into the line."""
        match request.on_busy or self._on_busy:
            case "reject":
                return active
            case None if request.options.locks:
                ids = (request.organization_id, request.conversation_id)
                locking: UUID | None = await connection.fetchval(sql.LOCKING_RUN, *ids, active)
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
        until, pause = time.monotonic() + _COMMIT_SECONDS, _FIRST_PAUSE
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

    # Readers -------------------------------------------------------------------------------------------

    async def events(self, organization_id: UUID, run_id: UUID, after: int) -> list[Event]:
        """Returns what a run's stored facts are shown as, from a position on, and its end.

        Raises NotFound (RUN_NOT_FOUND).
        """
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
        """Asks runs, given with their conversations, to stop. The ids it reached.

        Those in line end at once. Where one has ended because its calls wait for the client, they wait no longer.
        """
        run_ids = [run_id for run_id, _ in runs]
        reached = {
            run_id
            for run_id, conversation_id in runs
            if await self._leave_line(organization_id, conversation_id, run_id, None)
        }
        # After the line: a run that was in it when we looked may have got its turn since.
        reached |= {row["id"] for row in await self._pool.fetch(sql.CANCEL_RUNNING, organization_id, run_ids)}
        for conversation_id in {conversation_id for run_id, conversation_id in runs if run_id not in reached}:
            reached |= set(await self._decline(organization_id, conversation_id, run_ids))
        return [run_id for run_id in run_ids if run_id in reached]

    async def waiting_runs(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None
    ) -> list[tuple[UUID, UUID]]:
        """Returns runs of an agent whose calls wait for the client, with their conversations; of one conversation, if
        given.
        """
        rows = await self._pool.fetch(sql.PENDING_RUNS, organization_id, agent_id, conversation_id)
        return [(row["run_id"], row["conversation_id"]) for row in rows]

    async def _decline(
        self, organization_id: UUID, conversation_id: UUID, run_ids: Collection[UUID]
    ) -> Collection[UUID]:
        async with self._pool.acquire() as connection, connection.transaction():
            declined = await decline(connection, organization_id, conversation_id, run_ids)
            if declined:
                # What waited for an answer waits no longer; whoever beats first takes it.
                await release(connection, organization_id, conversation_id, None)
            return declined

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


def _request_values(request: TurnRequest) -> dict[str, Any]:
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
