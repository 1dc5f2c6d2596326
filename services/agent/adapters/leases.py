"""Runs and the replicas that own them: leases, claims, take-overs, and runs that are given up."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from itertools import groupby, takewhile
from typing import Any
from uuid import UUID

import asyncpg

from services.agent.adapters.approval_deadlines import answer_overdue
from services.agent.core.approvals import pending_message
from services.agent.core.fact_log import failure_to_json, from_row, options_to_json, settings_from_body
from services.agent.core.facts import (
    FIRST_FACT_VERSION,
    Compacted,
    Fact,
    Failure,
    ModelReplied,
    StopReason,
    UserSpoke,
    is_silent,
)
from services.agent.core.messages import Message
from services.agent.core.ports_journal import OwnedRun, OwnershipLost, Prompt, RunCannotBegin, Successor, TokenCounts
from services.agent.core.turn import CANCELLED, Turn, begin_turn, evolve, status_of
from services.agent.postgres import sql
from services.agent.postgres.conversations import promote, release, window
from services.agent.postgres.line import input_from_line, said_in_line
from services.agent.postgres.rows import input_rows, message_from_row
from services.agent.postgres.waiting_calls import fitting_window
from services.common.core.ceiling import ceiling_from_json
from services.common.errors import Aborted, InvalidArgument
from services.common.own_connection import OwnConnection

_log = logging.getLogger(__name__)


class PostgresLeases:
    """The lease of one replica, and the runs it takes. `beats`: what the lease is beaten by; None: the pool."""

    def __init__(self, pool: asyncpg.Pool, worker_id: UUID, beats: OwnConnection | None = None) -> None:
        self._pool = pool
        self._beats: Any = beats or pool
        self.worker_id = worker_id

    async def register(self) -> None:
        """Begins this replica's lease."""
        await self._beats.execute(sql.REGISTER, self.worker_id)

    async def tick(self) -> Mapping[str, Any]:
        """Beats, and reads what the replica must notice: see TICK."""
        row: Mapping[str, Any] = await self._beats.fetchrow(sql.TICK, self.worker_id)
        return row

    async def reap(self) -> int:
        """Queues the runs of replicas that stopped beating."""
        orphans: int = await self._pool.fetchval(sql.REAP)
        return orphans

    async def resign(self) -> None:
        """Ends the lease and hands over what still runs."""
        await self._pool.execute(sql.RESIGN, self.worker_id)

    async def repair(self) -> None:
        """Queues runs whose owner is in no table, marks tenants ready that have queued runs, and moves lines on whose
        turn ended unnoticed."""
        await self._pool.execute(sql.REQUEUE_LOST)
        await self._pool.execute(sql.OFFER_AGAIN)
        await self._pool.execute(sql.REPAIR_READY)
        for row in await self._pool.fetch(sql.STUCK_LINES):
            async with self._pool.acquire() as connection, connection.transaction():
                await release(connection, row["organization_id"], row["conversation_id"], row["active_run_id"])

    async def answer_overdue(self) -> list[tuple[UUID, Successor]]:
        """Begins runs with the default answers to calls that waited too long; each with its organization."""
        return await answer_overdue(self._pool, self.worker_id)

    async def claim(self, most: int, organization_id: UUID | None = None) -> list[Mapping[str, Any]] | None:
        """Takes queued runs of a tenant, else of the one that was served longest ago; None when no tenant is ready.

        Whoever has just queued a run names its tenant: another replica may be taking that off the list of ready ones.
        """
        organization_id = organization_id or await self._pool.fetchval(sql.CHOOSE_TENANT)
        if organization_id is None:
            return None
        async with self._pool.acquire() as connection:
            rows: list[Mapping[str, Any]] = await connection.fetch(
                sql.CLAIM_QUEUED, organization_id, most, self.worker_id
            )
            await connection.execute(sql.TENANT_DONE, organization_id, self.worker_id)
        return rows

    async def reclaim(self, organization_id: UUID, run_id: UUID) -> Mapping[str, Any] | None:
        """Takes up a run that is this replica's and that nobody drives."""
        row: Mapping[str, Any] | None = await self._pool.fetchrow(sql.RECLAIM, organization_id, run_id, self.worker_id)
        return row

    async def adopt(self, organization_id: UUID, run_id: UUID, fence: int) -> Mapping[str, Any] | None:
        """Takes a run from the replica that has it under this fence."""
        row: Mapping[str, Any] | None = await self._pool.fetchrow(
            sql.ADOPT, organization_id, run_id, fence, self.worker_id
        )
        return row

    async def load(self, run: Mapping[str, Any]) -> OwnedRun:
        """Returns a claimed run with its turn. Raises OwnershipLost, RunCannotBegin, NewerRelease."""
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                return await (_resume(connection, run) if run["facts"] else _begin(connection, run))
        except (Aborted, InvalidArgument) as error:
            detail = error.metadata.get("pending_request_id", "")
            failure = Failure(StopReason.ERROR, "internal_error", error.message, detail, error.reason)
            raise RunCannotBegin(failure) from error

    async def hand_back(self, run: Mapping[str, Any]) -> None:
        """Gives a run that this replica cannot read to those that have not refused it yet."""
        refused_by = [*run["refused_by"], self.worker_id]
        await self._pool.execute(sql.HAND_BACK, run["organization_id"], run["id"], run["fence"], refused_by)

    async def wait_in_line(self, run: Mapping[str, Any]) -> Successor | None:
        """Puts a background run that finds calls waiting for the client back into its line; who is next instead."""
        here = (run["organization_id"], run["conversation_id"])
        async with self._pool.acquire() as connection, connection.transaction():
            pending = pending_message(await window(connection, *here))
            pending_id = None if pending is None else pending.id
            if await connection.fetchval(sql.WAIT_IN_LINE, *here, run["id"], run["fence"], pending_id) is None:
                return None
            return await promote(connection, *here)

    async def give_up(self, run: Mapping[str, Any], failure: Failure, *, keeps_input: bool = True) -> Successor | None:
        """Ends a claimed run that cannot be driven; the next in line, if there is one.

        What it was to say is put into the log if it has not begun, unless its client is told and says it again.
        """
        organization_id, run_id = run["organization_id"], run["id"]
        status = status_of(failure.stop_reason).value
        error = failure_to_json(failure)
        async with self._pool.acquire() as connection, connection.transaction():
            if keeps_input and not run["facts"]:
                await _keep_input(connection, run)
            conversation_id = await connection.fetchval(
                sql.GIVE_UP, organization_id, run_id, run["fence"], status, failure.stop_reason.value, error
            )
            if conversation_id is None:
                return None
            return await release(connection, organization_id, conversation_id, run_id)


async def _begin(connection: Any, run: Mapping[str, Any]) -> OwnedRun:
    """Returns the first fact of a run that waited in line; its input comes out of the line."""
    organization_id, run_id, conversation_id = run["organization_id"], run["id"], run["conversation_id"]
    if await connection.fetchval(sql.BEGIN_RUN, organization_id, run_id, run["fence"]) is None:
        raise OwnershipLost
    line = await connection.fetchrow(sql.TAKE_INPUT, organization_id, conversation_id, run_id)
    if line is None:
        raise RunCannotBegin(CANCELLED)
    messages, options = input_from_line(line["schema_version"], line["input"], run_id)
    silent = is_silent(options, messages)
    ids = (organization_id, conversation_id, run_id)
    before, messages = await fitting_window(connection, *ids, messages, silent=silent)
    head = await _say(connection, run, messages, options_to_json(options))
    if head is None:
        raise RunCannotBegin(CANCELLED)
    owned = _owned_run(run, begin_turn(run_id, settings_from_body(head["body"]), before, messages))
    counted = TokenCounts(head["estimated_tokens"], head["reported_tokens"])
    return replace(owned, prompt_versions=head["prompt_versions"], recalled=head["first_seq"] - 1, counted=counted)


async def _keep_input(connection: Any, run: Mapping[str, Any]) -> None:
    """Puts what a run was to say into the log, for a run that ends before it began."""
    organization_id, run_id = run["organization_id"], run["id"]
    try:
        # Apart: what cannot be stored must not keep the run from its end.
        async with connection.transaction():
            if await connection.fetchval(sql.BEGIN_RUN, organization_id, run_id, run["fence"]) is None:
                return
            line = await connection.fetchrow(sql.TAKE_INPUT, organization_id, run["conversation_id"], run_id)
            if line is not None and (messages := said_in_line(line["input"], run_id)):
                await _say(connection, run, messages, {})
    except (LookupError, TypeError, ValueError, AttributeError, asyncpg.DataError):
        _log.exception("what run %s was to say cannot be kept", run_id)


async def _say(
    connection: Any, run: Mapping[str, Any], messages: Sequence[Message], options: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Stores the first fact of a run whose turn has come; the conversation's head, None when its agent is gone."""
    ids = {name: run[name] for name in ("organization_id", "conversation_id", "agent_id")} | {"run_id": run["id"]}
    head: Mapping[str, Any] | None = await connection.fetchrow(
        *sql.BEGIN_HEAD.bind(**ids, messages=len(messages), options=options)
    )
    if head is None:
        return None
    await connection.execute(
        *sql.FIRST_FACT.bind(
            **ids,
            fence=run["fence"],
            schema_version=FIRST_FACT_VERSION,
            settings=head["body"],
            system_hash=head["system_hash"],
            messages=input_rows(messages),
            log_id=head["log_id"],
            first_seq=head["first_seq"],
        )
    )
    return head


async def _resume(connection: Any, run: Mapping[str, Any]) -> OwnedRun:
    """Returns a run that another owner drove: its turn is the fold of its facts."""
    ids = (run["organization_id"], run["id"])
    here = (run["organization_id"], run["conversation_id"])
    history, head = await window(connection, *here), await connection.fetchrow(sql.HEAD, *here)
    rows = await connection.fetch(sql.RUN_MESSAGES, *ids)
    brought = {
        number: [message_from_row(row) for row in group] for number, group in groupby(rows, lambda row: row["fact"])
    }
    first_row, *rows_after = await connection.fetch(sql.FACTS, *ids)
    first = _fact(first_row, brought, await _whole_settings(connection, run, first_row["body"]))
    assert isinstance(first, UserSpoke)
    facts = [first, *(_fact(row, brought, row["body"]) for row in rows_after)]
    before = tuple(message for message in history if message.run_id != run["id"])
    turn = reduce(evolve, facts[1:], begin_turn(run["id"], first.settings, before, first.messages))
    prompt = None if _has_stale_prompt(facts) else await connection.fetchrow(sql.RUN_PROMPT, *ids)
    return replace(
        # A model call may have been cut short; if tools are what is next, their return resets the count.
        _owned_run(run, replace(turn, attempt=run["fence"])),
        prompt=None if prompt is None else Prompt(prompt["hash"], prompt["text"], {}, prompt["block_versions"]),
        prompt_versions=head["prompt_versions"],
        facts=len(facts),
        # What the log had before the run's own messages, as when it began.
        recalled=head["next_seq"] - 1 - len(rows),
        counted=TokenCounts(head["estimated_tokens"], head["reported_tokens"]),
    )


def _fact(row: Mapping[str, Any], brought: Mapping[int, Sequence[Message]], body: dict[str, Any]) -> Fact:
    return from_row(row["kind"], row["schema_version"], body, brought.get(row["number"], ()))


async def _whole_settings(connection: Any, run: Mapping[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """Returns the body of a run's first fact with the system prompt that it names; older ones have it."""
    if (system_hash := body.get("system_hash")) is None:
        return body
    system = await connection.fetchval(sql.SYSTEM_PROMPT, run["organization_id"], run["agent_id"], system_hash)
    return body | {"settings": body["settings"] | {"system": system or ""}}


def _has_stale_prompt(facts: Sequence[Fact]) -> bool:
    """Returns whether no model call was told the prompt that a compaction asks for."""
    since_reply = takewhile(lambda fact: not isinstance(fact, ModelReplied), reversed(facts))
    return any(isinstance(fact, Compacted) and fact.summary is not None for fact in since_reply)


def _owned_run(run: Mapping[str, Any], turn: Turn) -> OwnedRun:
    return OwnedRun(
        organization_id=run["organization_id"],
        user_id=run["user_id"],
        run_id=run["id"],
        agent_id=run["agent_id"],
        conversation_id=run["conversation_id"],
        fence=run["fence"],
        turn=turn,
        seconds_left=(run["deadline"] - datetime.now(UTC)).total_seconds(),
        created_at=run["created_at"],
        ancestors=tuple(run["ancestors"]),
        ceiling=ceiling_from_json(run["ceiling"]),
        cancel_requested=run["cancel_requested"],
        background=run["background"],
    )
