"""Runs and their steps in Postgres, as their readers see them, with SQLAlchemy."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.adapters.paging import bounded, page_of, reading
from services.agent.adapters.rows import message_from_row, run_view, usage_from_column
from services.agent.adapters.tables import MESSAGE_COLUMNS, agents, messages, runs, steps
from services.agent.events import RunView
from services.agent.fact_log import failure_from_json
from services.agent.messages import Message
from services.agent.ports_admin import RunList, RunUsage, StepView
from services.agent.turn import Usage
from services.common.errors import NotFound
from services.common.paging import PageOf


class PostgresRuns:
    """`ports_admin.Runs`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._reading = reading(engine)

    async def get(self, organization_id: UUID, run_id: UUID) -> RunView:
        return run_view((await self._row(organization_id, run_id))._asdict())

    async def list(self, organization_id: UUID, wanted: RunList) -> PageOf[RunView]:
        query = _present(organization_id).where(*_filters(wanted))
        async with self._reading.connect() as connection:
            query = await bounded(connection, query, runs, runs.c.created_at, wanted.page, organization_id)
            rows = (await connection.execute(query)).all()
        page = page_of(rows, "created_at", wanted.page)
        return PageOf(tuple(run_view(row._asdict()) for row in page.items), page.next_token)

    async def messages(self, organization_id: UUID, run_id: UUID) -> tuple[Message, ...]:
        await self._row(organization_id, run_id)
        query = (
            select(*MESSAGE_COLUMNS)
            .where(messages.c.organization_id == organization_id, messages.c.run_id == run_id)
            .order_by(messages.c.fact, messages.c.seq)
        )
        async with self._reading.connect() as connection:
            rows = (await connection.execute(query)).all()
        return tuple(message_from_row(row._asdict()) for row in rows)

    async def steps(self, organization_id: UUID, run_id: UUID) -> tuple[StepView, ...]:
        await self._row(organization_id, run_id)
        query = (
            select(steps)
            .where(steps.c.organization_id == organization_id, steps.c.run_id == run_id)
            .order_by(steps.c.number)
        )
        async with self._reading.connect() as connection:
            return tuple(map(_step, (await connection.execute(query)).all()))

    async def usage(self, organization_id: UUID, run_id: UUID) -> RunUsage:
        return RunUsage(*usage_from_column((await self._row(organization_id, run_id)).usage))

    async def _row(self, organization_id: UUID, run_id: UUID) -> Row[Any]:
        async with self._reading.connect() as connection:
            query = _present(organization_id).where(runs.c.id == run_id)
            row: Row[Any] | None = (await connection.execute(query)).first()
        if row is None:
            raise NotFound(f"Run run-{run_id} not found", reason="RUN_NOT_FOUND")
        return row


def _present(organization_id: UUID) -> Select[Any]:
    """Runs of agents that are not deleted."""
    agent = and_(
        agents.c.organization_id == organization_id,
        agents.c.id == runs.c.agent_id,
        agents.c.deleted_at.is_(None),
    )
    return select(runs).join(agents, agent).where(runs.c.organization_id == organization_id)


def _filters(wanted: RunList) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = []
    if wanted.agent_ids:
        filters.append(runs.c.agent_id.in_(wanted.agent_ids))
    if wanted.statuses:
        filters.append(runs.c.status.in_(wanted.statuses))
    if wanted.stop_reason is not None:
        filters.append(runs.c.stop_reason == wanted.stop_reason)
    if wanted.conversation_id is not None:
        filters.append(runs.c.conversation_id == wanted.conversation_id)
    if wanted.background is not None:
        filters.append(runs.c.background.is_(wanted.background))
    return filters


def _step(row: Row[Any]) -> StepView:
    return StepView(
        id=row.id,
        run_id=row.run_id,
        agent_id=row.agent_id,
        number=row.number,
        status=row.status,
        stop_reason=row.stop_reason,
        model_handle=row.model_handle,
        attempts=row.attempts,
        context_window_limit=row.context_window_limit,
        usage=Usage(**row.usage),
        failure=None if row.error is None else failure_from_json(row.error),
        prompt_hash="" if row.prompt_hash is None else row.prompt_hash.hex(),
        trace_id=row.trace_id or "",
        created_at=row.created_at,
    )
