"""The journal in Postgres: acceptance of requests, facts under a fence, what readers see, cancels."""

from collections.abc import Collection, Sequence
from uuid import UUID

import asyncpg

from services.agent.adapters.acceptance import RequestAcceptor
from services.agent.adapters.commits import FactCommitter
from services.agent.adapters.tending import TendingTurns
from services.agent.core.events import Ended, Event
from services.agent.core.ports_journal import OnBusy
from services.agent.core.tending import TendingLimits
from services.agent.postgres import line_sql, sql
from services.agent.postgres.conversations import release
from services.agent.postgres.rows import replay
from services.agent.postgres.waiting_calls import decline
from services.common.errors import NotFound


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
        acceptor = RequestAcceptor(pool, worker_id, on_busy)
        self._committer = FactCommitter(pool, TendingTurns(acceptor.accept_within, tending or TendingLimits()))
        self.accept = acceptor.accept
        self.accept_within = acceptor.accept_within
        self.commit = self._committer.commit

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

    async def move_to_background(self, organization_id: UUID, run_id: UUID) -> None:
        """Makes one in line a background run, unless its reader is elsewhere: nobody is there to be refused."""
        await self._pool.execute(line_sql.MOVE_TO_BACKGROUND, organization_id, run_id, self.worker_id)

    async def _leave_line(
        self, organization_id: UUID, conversation_id: UUID, run_id: UUID, home_id: UUID | None
    ) -> bool:
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(sql.LOCK_HEAD, organization_id, conversation_id)
            gone = await connection.fetchval(line_sql.CANCEL_WAITING, organization_id, conversation_id, run_id, home_id)
            if gone is not None and home_id is not None:
                await connection.execute(line_sql.FORGET_REQUEST, organization_id, run_id)
            return gone is not None
