"""Runs and what came of them in Postgres, as their readers see them, with SQLAlchemy."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, delete, func, literal, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.core.events import RunView
from services.agent.core.fact_log import failure_from_json
from services.agent.core.messages import Message, calls_of
from services.agent.core.page_tokens import MessagePage
from services.agent.postgres.rows import message_from_row, run_view, usage_from_column
from services.agent.resources.queries import autocommit
from services.agent.resources.runs.ports import Callback, RunList, RunSteps, RunUsage, StoredRun
from services.agent.resources.steps.ports import StepList, StepView
from services.agent.resources.steps.store import message_page, present_steps, step_page, step_view
from services.agent.resources.tables import MESSAGE_COLUMNS, agents, messages, runs, steps
from services.common.core.paging import Page, PageOf
from services.common.errors import FailedPrecondition, NotFound
from services.common.keyset import Keyset

# A duration as a moment, so that lists by either page alike.
_TOOK = literal(datetime(1970, 1, 1, tzinfo=UTC)) + func.coalesce(runs.c.completed_at - runs.c.created_at, timedelta(0))


class PostgresRuns:
    """`resources.runs.ports.RunStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._reading = autocommit(engine)

    async def get(self, organization_id: UUID, run_id: UUID) -> StoredRun:
        async with self._reading.connect() as connection:
            return _stored(await _row(connection, organization_id, run_id))

    async def list(self, organization_id: UUID, filters: RunList) -> PageOf[StoredRun]:
        place = (_TOOK if filters.by_duration else runs.c.created_at).label("place")
        query = _present(organization_id).add_columns(place).where(*_conditions(filters))
        async with self._reading.connect() as connection:
            page = await Keyset(runs, "run", time=place).page(connection, query, filters.page, organization_id)
        return page.map(_stored)

    async def messages(self, organization_id: UUID, run_id: UUID, page: MessagePage) -> PageOf[Message]:
        async with self._reading.connect() as connection:
            await _row(connection, organization_id, run_id)
            return await message_page(connection, organization_id, page, messages.c.run_id == run_id)

    async def steps(self, organization_id: UUID, run_id: UUID, page: Page) -> PageOf[StepView]:
        async with self._reading.connect() as connection:
            await _row(connection, organization_id, run_id)
            return await step_page(connection, organization_id, StepList(page=page, run_id=run_id))

    async def usage(self, organization_id: UUID, run_id: UUID) -> RunUsage:
        async with self._reading.connect() as connection:
            return RunUsage(*usage_from_column((await _row(connection, organization_id, run_id)).usage))

    async def whole(self, organization_id: UUID, run_id: UUID) -> RunSteps:
        of_run = present_steps(organization_id).where(steps.c.run_id == run_id).order_by(steps.c.number)
        async with self._reading.connect() as connection:
            row = await _row(connection, organization_id, run_id)
            rows = (await connection.execute(of_run)).all()
            called = await _called(connection, organization_id, run_id)
        return RunSteps(_stored(row), tuple(map(step_view, rows)), called, row.project_id)

    async def delete(self, organization_id: UUID, run_id: UUID) -> None:
        ended = runs.c.completed_at.is_not(None)
        statement = delete(runs).where(runs.c.organization_id == organization_id, runs.c.id == run_id, ended)
        async with self._reading.connect() as connection:
            await _row(connection, organization_id, run_id)
            if (await connection.execute(statement)).rowcount == 0:
                sentence = f"Run run-{run_id} has not ended; cancel it first."
                raise FailedPrecondition(sentence, reason="RUN_ACTIVE", metadata={"run_id": f"run-{run_id}"})


def _present(organization_id: UUID) -> Select[Any]:
    """Returns runs of agents that are not deleted, with the projects of these."""
    agent = and_(
        agents.c.organization_id == organization_id,
        agents.c.id == runs.c.agent_id,
        agents.c.deleted_at.is_(None),
    )
    return select(runs, agents.c.project_id).join(agents, agent).where(runs.c.organization_id == organization_id)


async def _row(connection: AsyncConnection, organization_id: UUID, run_id: UUID) -> Row[Any]:
    row: Row[Any] | None = (await connection.execute(_present(organization_id).where(runs.c.id == run_id))).first()
    if row is None:
        raise NotFound(f"Run run-{run_id} not found", reason="RUN_NOT_FOUND")
    return row


async def _called(connection: AsyncConnection, organization_id: UUID, run_id: UUID) -> Mapping[UUID, tuple[str, ...]]:
    """Returns names of the tools that each step called, in the order of the calls."""
    query = (
        select(*MESSAGE_COLUMNS)
        .where(
            messages.c.organization_id == organization_id,
            messages.c.run_id == run_id,
            messages.c.role == "assistant",
            messages.c.step_id.is_not(None),
        )
        .order_by(messages.c.seq)
    )
    called: dict[UUID, tuple[str, ...]] = {}
    for row in (await connection.execute(query)).all():
        names = tuple(call.name for call in calls_of(message_from_row(row._asdict())))
        called[row.step_id] = (*called.get(row.step_id, ()), *names)
    return called


def _stored(row: Row[Any]) -> StoredRun:
    view = run_view(row._asdict())
    url = row.options.get("callback_url")
    return StoredRun(
        **{each.name: getattr(view, each.name) for each in fields(RunView)},
        callback=Callback(url, row.callback_sent_at, row.callback_status_code, row.callback_error) if url else None,
        failure=None if row.error is None else failure_from_json(row.error),
        view=row.options.get("view") or "",
    )


def _conditions(filters: RunList) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.agent_ids:
        conditions.append(runs.c.agent_id.in_(filters.agent_ids))
    if filters.statuses:
        conditions.append(runs.c.status.in_(filters.statuses))
    if filters.stop_reason is not None:
        conditions.append(runs.c.stop_reason == filters.stop_reason)
    if filters.conversation_id is not None:
        conditions.append(runs.c.conversation_id == filters.conversation_id)
    if filters.background is not None:
        conditions.append(runs.c.background.is_(filters.background))
    return conditions
