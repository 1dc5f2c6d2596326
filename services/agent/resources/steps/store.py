"""Steps in Postgres, as their readers see them, with SQLAlchemy."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.core.fact_log import failure_from_json
from services.agent.core.facts import Usage
from services.agent.core.messages import Message
from services.agent.core.page_tokens import MessagePage, Place, place_of, place_token
from services.agent.postgres.rows import message_from_row
from services.agent.resources.queries import autocommit, shown_as
from services.agent.resources.steps.model import with_tags
from services.agent.resources.steps.ports import Feedback, StepList, StepTrace, StepView
from services.agent.resources.tables import MESSAGE_COLUMNS, agents, messages, provider_traces, steps
from services.common.core.paging import PageOf, cut
from services.common.errors import NotFound
from services.common.keyset import Keyset, sort_columns

# A message's time is its worker's, a step's is the database's.
_CLOCKS_DIFFER = timedelta(minutes=1)
_HOW_TO_TRACE = "nothing is kept of what the provider was sent: send the message with `include_trace` set to true"

_KEYSET = Keyset(steps, "step")


class PostgresSteps:
    """`resources.steps.ports.StepStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._reading = autocommit(engine)

    async def get(self, organization_id: UUID, step_id: UUID) -> StepView:
        async with self._reading.connect() as connection:
            return await _get(connection, organization_id, step_id)

    async def list(self, organization_id: UUID, filters: StepList) -> PageOf[StepView]:
        async with self._reading.connect() as connection:
            return await step_page(connection, organization_id, filters)

    async def messages(self, organization_id: UUID, step_id: UUID, page: MessagePage) -> PageOf[Message]:
        async with self._reading.connect() as connection:
            step = await _get(connection, organization_id, step_id)
            return await message_page(connection, organization_id, page, _said_in(step))

    async def set_feedback(self, organization_id: UUID, step_id: UUID, feedback: Feedback) -> StepView:
        async with self._engine.begin() as connection:
            this = steps.c.organization_id == organization_id, steps.c.id == step_id
            await connection.execute(select(steps.c.id).where(*this).with_for_update())
            step = await _get(connection, organization_id, step_id)
            values: dict[str, Any] = {"tags": list(with_tags(step.tags, feedback.add_tags))}
            if feedback.changes:
                values["feedback"] = feedback.value
            await connection.execute(update(steps).where(*this).values(values))
            return await _get(connection, organization_id, step_id)

    async def set_transaction(self, organization_id: UUID, step_id: UUID, transaction: str) -> StepView:
        this = steps.c.organization_id == organization_id, steps.c.id == step_id
        async with self._reading.connect() as connection:
            await connection.execute(update(steps).where(*this).values(tid=transaction))
            return await _get(connection, organization_id, step_id)

    async def trace(self, organization_id: UUID, step_id: UUID) -> StepTrace:
        query = select(provider_traces).where(
            provider_traces.c.organization_id == organization_id, provider_traces.c.step_id == step_id
        )
        async with self._reading.connect() as connection:
            step = await _get(connection, organization_id, step_id)
            row = (await connection.execute(query)).first()
        if row is None:
            raise NotFound(f"Step step-{step_id} has no trace; {_HOW_TO_TRACE}", reason="STEP_TRACE_NOT_FOUND")
        return StepTrace(step, row.trace, row.created_at)


async def step_page(connection: AsyncConnection, organization_id: UUID, filters: StepList) -> PageOf[StepView]:
    """Returns a page of steps by creation. Raises NotFound (STEP_NOT_FOUND), Refused (PAGE_TOKEN_INVALID)."""
    query = present_steps(organization_id).where(*_conditions(filters))
    page = await _KEYSET.page(connection, query, filters.page, organization_id)
    return page.map(step_view)


async def message_page(
    connection: AsyncConnection, organization_id: UUID, page: MessagePage, *where: ColumnElement[bool]
) -> PageOf[Message]:
    """Returns a page of messages of one log, in its order.

    Raises NotFound (MESSAGE_NOT_FOUND) for a cursor that is none of them, Refused (PAGE_TOKEN_INVALID).
    """
    seq = messages.c.seq
    conditions = messages.c.organization_id == organization_id, *where
    query = select(*MESSAGE_COLUMNS).where(*conditions)
    if page.token:
        start = place_of(page.token).seq
        query = query.where(seq > start if page.ascending else seq < start)
    if page.after is not None:
        query = query.where(seq > await _seq(connection, conditions, page.after))
    if page.before is not None:
        query = query.where(seq < await _seq(connection, conditions, page.before))
    query = query.order_by(*sort_columns(seq, ascending=page.ascending)).limit(page.size + 1)
    listed = cut((await connection.execute(query)).all(), page, lambda row: place_token(Place(0, row.seq)))
    return PageOf(tuple(message_from_row(row._asdict()) for row in listed.items), listed.next_token)


def present_steps(organization_id: UUID) -> Select[Any]:
    """Steps of agents that are not deleted, with the projects of these."""
    agent = and_(
        agents.c.organization_id == organization_id, agents.c.id == steps.c.agent_id, agents.c.deleted_at.is_(None)
    )
    columns = select(steps, agents.c.project_id)
    return columns.join(agents, agent).where(steps.c.organization_id == organization_id)


def step_view(row: Row[Any]) -> StepView:
    """Returns a step from a row of `present_steps`."""
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
        completed_at=row.completed_at,
        metrics=row.metrics,
        feedback=row.feedback,
        tags=tuple(row.tags),
        project_id=row.project_id,
        tid=row.tid,
    )


async def _get(connection: AsyncConnection, organization_id: UUID, step_id: UUID) -> StepView:
    row = (await connection.execute(present_steps(organization_id).where(steps.c.id == step_id))).first()
    if row is None:
        raise NotFound(f"Step step-{step_id} not found", reason="STEP_NOT_FOUND")
    return step_view(row)


async def _seq(connection: AsyncConnection, conditions: tuple[ColumnElement[bool], ...], message_id: UUID) -> int:
    has_id = shown_as(messages.c.id, message_id)
    query = select(messages.c.seq).where(*conditions, has_id).order_by(messages.c.id).limit(1)
    seq: int | None = (await connection.execute(query)).scalar_one_or_none()
    if seq is None:
        raise NotFound(f"The cursor message-{message_id} was not found", reason="MESSAGE_NOT_FOUND")
    return seq


def _said_in(step: StepView) -> ColumnElement[bool]:
    """The messages of a step: by its run, for the index, and where calls waited for the client by its agent, too. The
    first of a run has what was said to the agent.
    """
    of_step = messages.c.step_id == step.id
    if step.number == 1:
        of_step = or_(of_step, and_(messages.c.step_id.is_(None), messages.c.role.in_(("user", "system"))))
    in_run = and_(messages.c.run_id == step.run_id, of_step)
    if step.stop_reason != "requires_approval":
        return in_run
    since = step.created_at - _CLOCKS_DIFFER
    return or_(
        in_run,
        and_(messages.c.agent_id == step.agent_id, messages.c.created_at >= since, messages.c.step_id == step.id),
    )


def _conditions(filters: StepList) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.agent_id is not None:
        conditions.append(steps.c.agent_id == filters.agent_id)
    if filters.run_id is not None:
        conditions.append(steps.c.run_id == filters.run_id)
    if filters.model is not None:
        # The name is what comes after the provider; it may hold further slashes.
        name = func.substr(steps.c.model_handle, func.strpos(steps.c.model_handle, "/") + 1)
        conditions.append(or_(steps.c.model_handle == filters.model, name == filters.model))
    if filters.feedback is not None:
        conditions.append(steps.c.feedback == filters.feedback)
    if filters.has_feedback is not None:
        conditions.append(steps.c.feedback.is_not(None) if filters.has_feedback else steps.c.feedback.is_(None))
    if filters.tags:
        conditions.append(steps.c.tags.overlap(filters.tags))
    if filters.trace_ids:
        conditions.append(steps.c.trace_id.in_(filters.trace_ids))
    return conditions + _of_agent_and_time(filters)


def _of_agent_and_time(filters: StepList) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.start_time is not None:
        conditions.append(steps.c.created_at >= filters.start_time)
    if filters.end_time is not None:
        conditions.append(steps.c.created_at <= filters.end_time)
    if filters.project_id is not None:
        conditions.append(agents.c.project_id == filters.project_id)
    return conditions
