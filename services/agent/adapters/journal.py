"""The journal in Postgres: acceptance of requests, facts under a fence, claims of runs, cancels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from itertools import groupby
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.adapters import sql
from services.agent.adapters.rows import (
    ended_columns,
    fact_rows,
    message_from_row,
    message_rows,
    message_to_row,
    replay,
    settings_from_row,
    step_rows,
    usage_column,
)
from services.agent.events import Event
from services.agent.fact_log import from_row, settings_to_json
from services.agent.messages import Message, parts_from_json, parts_to_json
from services.agent.ports import Commit, Fenced, Owned, Prompt, Stored
from services.agent.turn import SCHEMA_VERSION, Settings, Turn, UserSpoke, evolve
from services.common.errors import Aborted, NotFound, ResourceExhausted

# Messages that a window holds at most; the newest count.
WINDOW_MESSAGES = 1_000
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
    """What became of a request. `owned` is set when its turn came at once; `started` is False for a retry."""

    run_id: UUID
    started: bool
    owned: Owned | None = None


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
                return Accepted(run_id, started=False)
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                return await self._accept(connection, request)
        except _Repeated:
            run_id = await self._pool.fetchval(
                sql.FIND_BY_KEYS, request.organization_id, list(request.keys), request.run_id
            )
            return Accepted(run_id, started=False)

    async def _accept(self, connection: Any, request: TurnRequest) -> Accepted:
        ids = (request.organization_id, request.conversation_id, request.run_id)
        head = await connection.fetchrow(sql.CLAIM_HEAD, *ids, len(request.messages))
        if head is None or head["agent_id"] != request.agent_id:
            raise NotFound("Agent not found", reason="AGENT_NOT_FOUND")
        if head["active_run_id"] is not None:
            await self._enter_line(connection, request, head)
            return Accepted(request.run_id, started=True)
        now = datetime.now(UTC)
        settings = settings_from_row(head, request.max_steps)
        inserted = await connection.fetchrow(
            sql.START,
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
            {"settings": settings_to_json(settings)},
            _input_rows(request.messages),
            head["log_id"],
            head["first_seq"],
            SCHEMA_VERSION,
            now,
        )
        _check_first(inserted, request)
        history = await _window(connection, request.organization_id, request.conversation_id)
        return Accepted(request.run_id, started=True, owned=_owned(request, head, settings, history, now))

    async def _enter_line(self, connection: Any, request: TurnRequest, head: Mapping[str, Any]) -> None:
        if head["active_run_id"] != request.run_id:
            if self._reject_when_busy:
                active = head["active_run_id"]
                raise Aborted(
                    "Cannot send a new message: another request is currently being processed for this "
                    f"conversation. Please wait for it to complete. (run_id=run-{active})",
                    reason="CONVERSATION_BUSY",
                    metadata={"run_id": f"run-{active}"},
                )
            if head["waiting"] > LONGEST_LINE:
                raise ResourceExhausted(
                    f"{LONGEST_LINE} requests wait for this conversation already; try again later.",
                    reason="CONVERSATION_LINE_FULL",
                )
        entered = await connection.fetchrow(
            sql.ENTER_LINE,
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
            {
                "max_steps": request.max_steps,
                "messages": [_message_to_line(message) for message in request.messages],
            },
            datetime.now(UTC),
        )
        _check_first(entered, request)

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
            None if prompt is None else prompt.versions,
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
                return replace(stored, successor=await _promote(connection, owned))
            return stored

    # Readers -------------------------------------------------------------------------------------------

    async def events(self, organization_id: UUID, run_id: UUID, after: int) -> list[Event]:
        """What a run's stored facts are shown as, from a position on. Raises NotFound (RUN_NOT_FOUND)."""
        async with (
            self._pool.acquire() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            run = await connection.fetchrow(sql.RUN, organization_id, run_id)
            if run is None:
                raise NotFound(f"there is no run run-{run_id}", reason="RUN_NOT_FOUND")
            messages = await connection.fetch(sql.RUN_MESSAGES, organization_id, run_id)
            facts = await connection.fetch(sql.FACTS, organization_id, run_id)
        return [event for event in replay(run, facts, messages) if event.sequence > after]

    # Workers -------------------------------------------------------------------------------------------

    async def register(self) -> None:
        """Begins this replica's lease."""
        await self._pool.execute(sql.REGISTER, self.worker_id)

    async def tick(self) -> Mapping[str, Any]:
        """Beats, and reads what the replica must notice: alive, mine, cancelled, lost, ready."""
        row: Mapping[str, Any] = await self._pool.fetchrow(sql.TICK, self.worker_id)
        return row

    async def reap(self) -> int:
        """Queues the runs of replicas that stopped beating."""
        orphans: int = await self._pool.fetchval(sql.REAP)
        return orphans

    async def resign(self) -> None:
        """Ends the lease and hands over what still runs."""
        await self._pool.execute(sql.RESIGN, self.worker_id)

    async def claim(self, most: int) -> list[Owned]:
        """Takes queued runs of the tenant that was served longest ago."""
        organization_id = await self._pool.fetchval(sql.CHOOSE_TENANT)
        if organization_id is None:
            return []
        async with self._pool.acquire() as connection:
            rows = await connection.fetch(sql.CLAIM_QUEUED, organization_id, most, self.worker_id)
            await connection.execute(sql.TENANT_DONE, organization_id)
        return [owned for row in rows if (owned := await self._load(row)) is not None]

    async def repair_queue(self) -> None:
        """Marks tenants ready that have queued runs but are not marked."""
        await self._pool.execute(sql.REPAIR_READY)

    async def reclaim(self, run_id: UUID) -> Owned | None:
        """Takes up a run that is this replica's and that nobody drives."""
        row = await self._pool.fetchrow(sql.RECLAIM, run_id, self.worker_id)
        return None if row is None else await self._load(row)

    async def _load(self, run: Mapping[str, Any]) -> Owned | None:
        async with self._pool.acquire() as connection, connection.transaction():
            if run["facts"] > 0:
                return await _resume(connection, run)
            owned = await _begin(connection, run)
            if owned is None:
                # Its agent was deleted while it waited.
                await connection.execute(sql.DROP_RUN, run["organization_id"], run["id"], run["fence"])
            return owned

    # Cancel --------------------------------------------------------------------------------------------

    async def cancel(self, organization_id: UUID, runs: Sequence[tuple[UUID, UUID]]) -> list[UUID]:
        """Asks runs, given with their conversations, to stop; those in line end at once. The ids it reached."""
        run_ids = [run_id for run_id, _ in runs]
        reached = {row["id"] for row in await self._pool.fetch(sql.CANCEL_RUNNING, organization_id, run_ids)}
        for run_id, conversation_id in runs:
            if run_id not in reached and await self.withdraw(organization_id, conversation_id, run_id):
                reached.add(run_id)
        return [run_id for run_id in run_ids if run_id in reached]

    async def withdraw(self, organization_id: UUID, conversation_id: UUID, run_id: UUID) -> bool:
        """Takes a run out of its line, if it is still there."""
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(sql.LOCK_HEAD, organization_id, conversation_id)
            gone = await connection.fetchval(sql.CANCEL_WAITING, organization_id, conversation_id, run_id)
            return gone is not None


async def _promote(connection: Any, owned: Owned) -> tuple[UUID, UUID | None] | None:
    row = await connection.fetchrow(sql.PROMOTE, owned.organization_id, owned.conversation_id)
    return None if row is None else (row["run_id"], row["home_id"])


async def _begin(connection: Any, run: Mapping[str, Any]) -> Owned | None:
    """The first fact of a run that waited in line; its input comes out of the line."""
    ids = (run["organization_id"], run["conversation_id"], run["id"])
    line = await connection.fetchval(sql.LINE_INPUT, *ids)
    if line is None:
        return None
    messages = tuple(_message_from_line(stored, run["id"]) for stored in line["messages"])
    head = await connection.fetchrow(sql.BEGIN_HEAD, *ids, len(messages))
    if head is None:
        return None
    settings = settings_from_row(head, line["max_steps"])
    begun = await connection.fetchval(
        sql.BEGIN_RUN,
        run["organization_id"],
        run["id"],
        run["fence"],
        {"settings": settings_to_json(settings)},
        _input_rows(messages),
        head["log_id"],
        head["first_seq"],
        SCHEMA_VERSION,
    )
    if begun is None:
        return None
    history = await _window(connection, run["organization_id"], run["conversation_id"])
    turn = Turn(run["id"], settings, history=history)
    return replace(
        _taken(run, turn),
        facts=1,
        prompt_versions=head["prompt_versions"],
        recalled=len(history) - len(messages),
    )


async def _resume(connection: Any, run: Mapping[str, Any]) -> Owned:
    """A run that another owner drove: its turn is the fold of its facts."""
    ids = (run["organization_id"], run["id"])
    window = await _window(connection, run["organization_id"], run["conversation_id"])
    rows = await connection.fetch(sql.RUN_MESSAGES, *ids)
    brought = {
        number: [message_from_row(row) for row in group] for number, group in groupby(rows, lambda row: row["fact"])
    }
    facts = [
        from_row(row["kind"], row["schema_version"], row["body"], brought.get(row["number"], ()))
        for row in await connection.fetch(sql.FACTS, *ids)
    ]
    first = facts[0]
    assert isinstance(first, UserSpoke)
    before = tuple(message for message in window if message.run_id != run["id"])
    turn = reduce(evolve, facts, Turn(run["id"], first.settings, history=before))
    prompt = await connection.fetchrow(sql.RUN_PROMPT, *ids)
    return replace(
        _taken(run, replace(turn, attempt=run["fence"])),
        prompt=None if prompt is None else Prompt(prompt["hash"], prompt["text"], {}, prompt["block_versions"]),
        recalled=len(before),
    )


async def _window(connection: Any, organization_id: UUID, conversation_id: UUID) -> tuple[Message, ...]:
    rows = await connection.fetch(sql.WINDOW, organization_id, conversation_id, WINDOW_MESSAGES)
    return tuple(message_from_row(row) for row in reversed(rows))


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
        facts=1,
        turn=Turn(request.run_id, settings, history=history),
        seconds_left=request.seconds,
        created_at=now,
        ancestors=request.ancestors,
        prompt_versions=head["prompt_versions"],
        recalled=len(history) - len(request.messages),
    )


def _taken(run: Mapping[str, Any], turn: Turn) -> Owned:
    return Owned(
        organization_id=run["organization_id"],
        user_id=run["user_id"],
        run_id=run["id"],
        agent_id=run["agent_id"],
        conversation_id=run["conversation_id"],
        fence=run["fence"],
        facts=run["facts"],
        turn=turn,
        seconds_left=(run["deadline"] - datetime.now(UTC)).total_seconds(),
        created_at=run["created_at"],
        ancestors=tuple(run["ancestors"]),
        cancel_requested=run["cancel_requested"],
    )


def _check_first(inserted: Mapping[str, Any], request: TurnRequest) -> None:
    if inserted["runs"] == 0 or inserted["keys"] < len(request.keys):
        raise _Repeated


def _stored(row: Mapping[str, Any] | None) -> Stored:
    if row is None:
        raise Fenced
    return Stored(row["cancel_requested"], row["started_at"], row["completed_at"])


def _input_rows(messages: Sequence[Message]) -> list[dict[str, Any]]:
    return [message_to_row(message, place, 1) for place, message in enumerate(messages)]


def _message_to_line(message: Message) -> dict[str, Any]:
    stored = {"id": message.id, "role": message.role, "parts": parts_to_json(message.parts)}
    return stored | {"name": message.name, "otid": message.otid, "sender_id": message.sender_id}


def _message_from_line(stored: Mapping[str, Any], run_id: UUID) -> Message:
    return Message(
        id=UUID(stored["id"]),
        role=stored["role"],
        parts=parts_from_json(stored["parts"]),
        created_at=datetime.now(UTC),
        run_id=run_id,
        name=stored["name"],
        otid=stored["otid"],
        sender_id=stored["sender_id"],
    )
