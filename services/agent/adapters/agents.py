"""Agents in Postgres, with SQLAlchemy."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    Select,
    Table,
    Uuid,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.adapters.erasing import stop_runs
from services.agent.adapters.journal import WINDOW_MESSAGES
from services.agent.adapters.paging import bounded, order, page_of, reading
from services.agent.adapters.tables import (
    agents,
    conversation_heads,
    conversation_segments,
    conversations,
    messages,
    outbox,
    runs,
)
from services.agent.agents import SETTABLE, Agent, AgentSettings, LastRun
from services.agent.lists import PageOf
from services.agent.ports_admin import AgentList
from services.common.errors import NotFound
from services.common.ids import uuid7

_SWEEP_AFTER = text("interval '1 hour'")
# So that who still reads a run of a deleted agent sees it end.
_ERASE_AFTER = text("interval '3 seconds'")
_NO_DELAY = text("interval '0'")


class PostgresAgents:
    """`ports_admin.AgentStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._reading = reading(engine)

    async def reserve(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> bool:
        row = {
            "organization_id": organization_id,
            "id": _reservation(agent_id),
            "kind": "purge_orphan",
            "subject_id": agent_id,
            "payload": {"user_id": str(user_id)},
        }
        taken = exists().where(agents.c.organization_id == organization_id, agents.c.id == agent_id)
        source = select(*_literals(outbox, row), func.now() + _SWEEP_AFTER).where(~taken)
        made = postgresql.insert(outbox).from_select([*row, "not_before"], source)
        renewed = made.on_conflict_do_update(
            index_elements=["organization_id", "id"],
            set_={"not_before": made.excluded.not_before},
            # Else the parts of an earlier attempt are being swept at this very moment.
            where=outbox.c.attempts == 0,
        ).returning(outbox.c.id)
        async with self._reading.connect() as connection:
            return (await connection.execute(renewed)).first() is not None

    async def release(self, organization_id: UUID, agent_id: UUID) -> None:
        async with self._reading.connect() as connection:
            await connection.execute(_reserved(organization_id, agent_id))

    async def insert(
        self, organization_id: UUID, agent_id: UUID, user_id: UUID, settings: AgentSettings
    ) -> Agent | None:
        row = {"organization_id": organization_id, "id": agent_id, **_columns(settings)}
        row |= {"created_by_id": user_id, "last_updated_by_id": user_id}
        # One statement: the reservation goes, and out of it the agent and its default conversation come.
        reservation = _reserved(organization_id, agent_id).returning(outbox.c.id).cte("reservation")
        source = select(*_literals(agents, row)).select_from(reservation)
        made = insert(agents).from_select([*row], source).returning(agents).cte("made")
        log_id = literal(uuid7(), Uuid)
        parts = (
            _insert_from(made, conversations, id=made.c.id, agent_id=made.c.id, created_by_id=made.c.created_by_id),
            _insert_from(
                made,
                conversation_segments,
                conversation_id=made.c.id,
                ordinal=literal(0),
                log_id=log_id,
                from_seq=literal(1),
            ),
            _insert_from(made, conversation_heads, conversation_id=made.c.id, log_id=log_id),
        )
        try:
            async with self._reading.connect() as connection:
                stored = (await connection.execute(select(made).add_cte(*parts))).first()
        except IntegrityError:
            return None
        return None if stored is None else agent_from_row(stored._asdict())

    async def get(self, organization_id: UUID, agent_id: UUID) -> Agent:
        found = _present(organization_id).where(agents.c.id == agent_id)
        async with self._reading.connect() as connection:
            row = (await connection.execute(_whole(found))).first()
        if row is None:
            raise no_such_agent(agent_id)
        return agent_from_row(row._asdict())

    async def list(self, organization_id: UUID, wanted: AgentList) -> PageOf[Agent]:
        time = agents.c.updated_at if wanted.by_update else agents.c.created_at
        page = wanted.page
        async with self._reading.connect() as connection:
            found = _present(organization_id).where(*_filters(wanted))
            found = await bounded(connection, found, agents, time, page, organization_id)
            query = _whole(found, lambda rows: order(rows.c[time.name], rows.c.id, ascending=page.scan_ascending))
            rows = (await connection.execute(query)).all()
        one = page_of(rows, time.name, page)
        return PageOf(tuple(agent_from_row(row._asdict()) for row in one.items), one.next_token)

    async def update(
        self, organization_id: UUID, user_id: UUID, before: Agent, settings: AgentSettings
    ) -> Agent | None:
        statement = (
            update(agents)
            .where(
                agents.c.organization_id == organization_id,
                agents.c.id == before.id,
                agents.c.version == before.version,
                agents.c.deleted_at.is_(None),
            )
            .values(
                **_columns(settings),
                version=agents.c.version + 1,
                last_updated_by_id=user_id,
                updated_at=func.now(),
            )
            .returning(agents)
        )
        async with self._reading.connect() as connection:
            row = (await connection.execute(statement)).first()
        return None if row is None else agent_from_row(row._asdict(), before.window, before.last_run)

    async def delete(self, organization_id: UUID, agent_id: UUID, user_id: UUID) -> None:
        tombstone = (
            update(agents)
            .where(
                agents.c.organization_id == organization_id,
                agents.c.id == agent_id,
                agents.c.deleted_at.is_(None),
            )
            .values(deleted_at=func.now())
            .returning(agents.c.id)
        )
        async with self._engine.begin() as connection:
            if (await connection.execute(tombstone)).first() is None:
                raise no_such_agent(agent_id)
            await stop_runs(connection, organization_id, agent_id)
            await _order_purges(connection, organization_id, agent_id, user_id)


def no_such_agent(agent_id: UUID) -> NotFound:
    """The error for an agent that is not there."""
    return NotFound(f"Agent agent-{agent_id} not found", reason="AGENT_NOT_FOUND")


def agent_from_row(row: Mapping[str, Any], window: tuple[UUID, ...] = (), last_run: LastRun | None = None) -> Agent:
    """A row of `agents`, with `window` and the columns of the last run where the query has them."""
    if row.get("window"):
        window = tuple(row["window"])
    if row.get("run_completed_at"):
        last_run = LastRun(row["run_stop_reason"], row["run_created_at"], row["run_completed_at"])
    settings = {name: row[name] for name in SETTABLE}
    settings |= {"tool_ids": tuple(row["tool_ids"]), "tags": tuple(row["tags"])}
    return Agent(
        id=row["id"],
        version=row["version"],
        settings=AgentSettings(**settings),
        created_by_id=row["created_by_id"],
        last_updated_by_id=row["last_updated_by_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        window=window,
        last_run=last_run,
    )


def _columns(settings: AgentSettings) -> dict[str, Any]:
    values = {name: getattr(settings, name) for name in SETTABLE}
    return values | {"tool_ids": list(settings.tool_ids), "tags": list(settings.tags)}


def _present(organization_id: UUID) -> Select[Any]:
    return select(agents).where(agents.c.organization_id == organization_id, agents.c.deleted_at.is_(None))


def _filters(wanted: AgentList) -> list[ColumnElement[bool]]:
    filters: list[ColumnElement[bool]] = []
    if wanted.name is not None:
        filters.append(agents.c.name == wanted.name)
    if wanted.query_text:
        filters.append(agents.c.name.icontains(wanted.query_text, autoescape=True))
    if wanted.tags:
        tags = list(wanted.tags)
        filters.append(agents.c.tags.contains(tags) if wanted.match_all_tags else agents.c.tags.overlap(tags))
    if not wanted.show_hidden:
        filters.append(agents.c.hidden.is_(False))
    return filters


def _whole(found: Select[Any], ordering: Any = lambda rows: ()) -> Select[Any]:
    """The agents that `found` selects, each with its window and its last run, in one statement."""
    rows = found.subquery("found")
    last, window = _last_run(rows), _window(rows)
    joined = rows.outerjoin(last, true()).outerjoin(window, true())
    return select(rows, last, window).select_from(joined).order_by(*ordering(rows))


def _last_run(rows: FromClause) -> FromClause:
    return (
        select(
            runs.c.stop_reason.label("run_stop_reason"),
            runs.c.created_at.label("run_created_at"),
            runs.c.completed_at.label("run_completed_at"),
        )
        .where(
            runs.c.organization_id == rows.c.organization_id,
            runs.c.agent_id == rows.c.id,
            runs.c.completed_at.is_not(None),
        )
        .order_by(runs.c.created_at.desc())
        .limit(1)
        .lateral("last_run")
    )


def _window(rows: FromClause) -> FromClause:
    """The ids of the messages that a turn in the default conversation would begin with; see adapters/sql.py, WINDOW."""
    head, segment = conversation_heads, conversation_segments
    first = case(
        (segment.c.ordinal == head.c.window_ordinal, func.greatest(head.c.window_seq, segment.c.from_seq)),
        else_=segment.c.from_seq,
    )
    of_segment = (
        select(messages.c.id, messages.c.seq)
        .where(
            messages.c.organization_id == segment.c.organization_id,
            messages.c.log_id == segment.c.log_id,
            messages.c.seq >= first,
            messages.c.seq <= func.coalesce(segment.c.to_seq, LAST_SEQ),
        )
        .order_by(messages.c.seq.desc())
        .limit(WINDOW_MESSAGES)
        .lateral("of_segment")
    )
    newest = (
        select(of_segment.c.id, segment.c.ordinal, of_segment.c.seq)
        .select_from(head.join(segment, true()).join(of_segment, true()))
        .where(
            head.c.organization_id == rows.c.organization_id,
            head.c.conversation_id == rows.c.id,
            segment.c.organization_id == rows.c.organization_id,
            segment.c.conversation_id == rows.c.id,
            segment.c.ordinal >= head.c.window_ordinal,
        )
        .order_by(segment.c.ordinal.desc(), of_segment.c.seq.desc())
        .limit(WINDOW_MESSAGES)
        .lateral("newest")
    )
    oldest_first = postgresql.aggregate_order_by(newest.c.id, newest.c.ordinal, newest.c.seq)
    return select(func.array_agg(oldest_first, type_=postgresql.ARRAY(Uuid)).label("window")).lateral("view")


LAST_SEQ = literal(2**63 - 1, BigInteger)


def _reservation(agent_id: UUID) -> UUID:
    return uuid5(agent_id, "reservation")


def _reserved(organization_id: UUID, agent_id: UUID) -> Any:
    return delete(outbox).where(
        outbox.c.organization_id == organization_id,
        outbox.c.id == _reservation(agent_id),
        outbox.c.attempts == 0,
    )


async def _order_purges(connection: AsyncConnection, organization_id: UUID, agent_id: UUID, user_id: UUID) -> None:
    delays = {"purge_memory": _NO_DELAY, "purge_receipts": _NO_DELAY, "erase": _ERASE_AFTER}
    orders = [
        {
            "organization_id": organization_id,
            "id": uuid7(),
            "kind": kind,
            "subject_id": agent_id,
            "payload": {"user_id": str(user_id)},
            "not_before": func.now() + delay,
        }
        for kind, delay in delays.items()
    ]
    await connection.execute(insert(outbox).values(orders))


def _literals(table: Table, row: Mapping[str, Any]) -> list[ColumnElement[Any]]:
    return [literal(value, table.c[name].type) for name, value in row.items()]


def _insert_from(made: FromClause, table: Table, **columns: ColumnElement[Any]) -> Any:
    source = select(made.c.organization_id, *columns.values())
    return insert(table).from_select(["organization_id", *columns], source).cte(f"made_{table.name}")
