"""Statements that make agents and begin their conversations, built once."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Delete,
    FromClause,
    Integer,
    Select,
    Uuid,
    bindparam,
    column,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    null,
    select,
    table,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from services.agent.resources.agents.model.settings import SETTABLE
from services.agent.resources.agents.statements import parameter
from services.agent.resources.tables import (
    agent_identities,
    agents,
    conversation_heads,
    conversation_segments,
    conversations,
    group_agents,
    groups,
    identities,
    messages,
    outbox,
    runs,
)

NEW_AGENT = ("organization_id", "id", *SETTABLE, "created_by_id", "last_updated_by_id")
# Of a row that rows.message_to_row makes.
_SAID = ("id", "role", "content", "name", "otid", "sender_id", "created_at")
# Runs and rewinds that go on.
_HOLDERS = table("turn_holders", column("organization_id", Uuid), column("id", Uuid), schema="agent").c
_LOG_ID = bindparam("given_log_id", type_=Uuid)


def _reservation() -> Delete:
    return delete(outbox).where(
        outbox.c.organization_id == parameter(outbox, "organization_id"),
        outbox.c.id == parameter(outbox, "reservation", "id"),
        # Else its parts are being swept.
        outbox.c.attempts == 0,
    )


def _reserve() -> Any:
    taken = exists().where(
        agents.c.organization_id == parameter(agents, "organization_id"), agents.c.id == parameter(agents, "id")
    )
    row = {
        "organization_id": parameter(outbox, "organization_id"),
        "id": parameter(outbox, "reservation", "id"),
        "kind": literal("purge_orphan"),
        "subject_id": parameter(agents, "id"),
        "payload": parameter(outbox, "payload"),
        "not_before": func.now() + text("interval '1 hour'"),
    }
    reservation = postgresql.insert(outbox).from_select([*row], select(*row.values()).where(~taken))
    return reservation.on_conflict_do_update(
        index_elements=["organization_id", "id"],
        set_={"not_before": reservation.excluded.not_before},
        where=outbox.c.attempts == 0,
    ).returning(outbox.c.id)


def _insert() -> Select[Any]:
    """Returns what turns the reservation into the agent and its default conversation: the commit point."""
    reservation = _reservation().returning(outbox.c.id).cte("reservation")
    source = select(*(parameter(agents, name) for name in NEW_AGENT)).select_from(reservation)
    agent = insert(agents).from_select([*NEW_AGENT], source).returning(agents).cte("made")
    conversation = _insert_from(
        agent, conversations, id=agent.c.id, agent_id=agent.c.id, created_by_id=agent.c.created_by_id
    )
    segment = _insert_from(
        agent,
        conversation_segments,
        conversation_id=agent.c.id,
        ordinal=literal(0),
        log_id=_LOG_ID,
        from_seq=literal(1),
    )
    rows = _message_rows()
    count = select(func.count()).select_from(rows).scalar_subquery()
    head = _insert_from(
        agent,
        conversation_heads,
        conversation_id=agent.c.id,
        log_id=_LOG_ID,
        next_seq=count + 1,
        last_message_at=select(func.max(rows.c.created_at)).scalar_subquery(),
    )
    return select(agent).add_cte(conversation, segment, head, _first_messages(agent, rows), _identity_rows(agent))


def _message_rows() -> FromClause:
    """Returns the messages that the conversation begins with, as rows."""
    columns = [column(name, messages.c[name].type) for name in _SAID]
    rows = func.jsonb_to_recordset(bindparam("given_messages", type_=postgresql.JSONB)).table_valued(
        column("place", Integer),
        column("search", messages.c.name.type),
        column("search_more", postgresql.JSONB),
        *columns,
        name="said",
    )
    return rows.render_derived(with_types=True)


def _first_messages(agent: FromClause, rows: FromClause) -> Any:
    more = func.jsonb_array_elements_text(rows.c.search_more).column_valued("more")
    values: dict[str, ColumnElement[Any]] = {
        "organization_id": agent.c.organization_id,
        "log_id": _LOG_ID,
        "seq": rows.c.place + 1,
        "agent_id": agent.c.id,
        "conversation_id": agent.c.id,
        "search": _searchable(rows.c.search),
        "search_more": select(func.array_agg(_searchable(more))).scalar_subquery(),
    } | {name: rows.c[name] for name in _SAID}
    source = select(*values.values()).select_from(agent.join(rows, literal_column("true")))
    return insert(messages).from_select([*values], source).cte("made_messages")


def _identity_rows(agent: FromClause) -> Any:
    """Returns the rows of the identities that the agent serves, in their order."""
    ids = func.unnest(bindparam("given_identity_ids", type_=postgresql.ARRAY(Uuid))).table_valued(
        column("id", Uuid), with_ordinality="place", name="served"
    )
    served = ids.render_derived()
    its_identity = (identities.c.organization_id == agent.c.organization_id) & (identities.c.id == served.c.id)
    values = {
        "organization_id": agent.c.organization_id,
        "agent_id": agent.c.id,
        "identity_id": identities.c.id,
        # One after the other.
        "attached_at": func.clock_timestamp() + served.c.place * text("interval '1 microsecond'"),
    }
    source = select(*values.values()).select_from(
        agent.join(served, literal_column("true")).join(identities, its_identity)
    )
    return insert(agent_identities).from_select([*values], source).cte("made_identities")


def _leave_groups() -> Sequence[Delete]:
    """Returns what takes a deleted agent out of groups and identities; groups that it managed are deleted."""
    of_tenant = [table.c.organization_id == parameter(agents, "organization_id") for table in (groups, group_agents)]
    return (
        delete(agent_identities).where(
            agent_identities.c.organization_id == parameter(agents, "organization_id"),
            agent_identities.c.agent_id == parameter(agents, "id"),
        ),
        delete(groups).where(of_tenant[0], groups.c.manager_agent_id == parameter(agents, "id")),
        delete(group_agents).where(of_tenant[1], group_agents.c.agent_id == parameter(agents, "id")),
    )


def _searchable(text: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.to_tsvector("english", text).op("||")(func.to_tsvector("simple", text))


def _insert_from(agent: FromClause, table: Any, **columns: ColumnElement[Any]) -> Any:
    source = select(agent.c.organization_id, *columns.values())
    return insert(table).from_select(["organization_id", *columns], source).cte(f"made_{table.name}")


def _lock() -> Select[Any]:
    """Returns the run that has the turn of an agent's default conversation; nobody else gets the turn now."""
    head = conversation_heads
    its_agent = (agents.c.organization_id == head.c.organization_id) & (agents.c.id == head.c.conversation_id)
    return (
        select(head.c.active_run_id)
        .select_from(head.join(agents, its_agent))
        .where(*_of_agent(head), agents.c.deleted_at.is_(None))
        .with_for_update(of=head)
    )


def _goes_on() -> Select[Any]:
    its_tenant = _HOLDERS.organization_id == parameter(runs, "organization_id")
    return select(exists().where(its_tenant, _HOLDERS.id == parameter(runs, "run_id", "id")))


def _reset() -> Any:
    """Returns what lets the conversation go on in an empty log of its own; it has no other segment."""
    head, segment = conversation_heads, conversation_segments
    next_ordinal = (
        select(func.coalesce(func.max(segment.c.ordinal), -1) + 1).where(*_of_agent(segment)).cte("next_ordinal")
    )
    ordinal = select(*next_ordinal.c).scalar_subquery()
    closed = delete(segment).where(*_of_agent(segment)).cte("gone")
    row = {
        "organization_id": parameter(agents, "organization_id"),
        "conversation_id": parameter(agents, "id"),
        "ordinal": ordinal,
        "log_id": _LOG_ID,
        "from_seq": literal(1),
    }
    begun = insert(segment).from_select([*row], select(*row.values())).cte("begun")
    nothing = ("summary_id", "pending_message_id", "approval_due", "prompt_hash", "prompt_versions")
    return (
        update(head)
        .where(*_of_agent(head))
        .values(
            log_id=_LOG_ID,
            next_seq=1,
            window_ordinal=ordinal,
            window_seq=1,
            **dict.fromkeys(nothing, null()),
        )
        .add_cte(closed, begun)
    )


def _of_agent(table: Any) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions for an agent's default conversation, which has the agent's id."""
    return (
        table.c.organization_id == parameter(agents, "organization_id"),
        table.c.conversation_id == parameter(agents, "id"),
    )


# Parameters: organization_id, id, reservation, payload.
RESERVE = _reserve()
# organization_id, reservation
RELEASE = _reservation()
# NEW_AGENT, reservation, log_id, messages (rows of rows.message_to_row), identity_ids
INSERT = _insert()
# organization_id, id
LEAVING = _leave_groups()
# organization_id, id
LOCK = _lock()
# organization_id, run_id; after LOCK, which may have waited for that run to be there
GOES_ON = _goes_on()
# organization_id, id, log_id; in the transaction of LOCK
RESET = _reset()
