"""Statements about agents. Those that never vary are built once: that costs more than to run them."""

from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Delete,
    FromClause,
    Select,
    Table,
    Uuid,
    and_,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    text,
    true,
)
from sqlalchemy.dialects import postgresql

from services.agent.adapters.conversations import WINDOW_MESSAGES
from services.agent.adapters.tables import (
    agents,
    conversation_heads,
    conversation_segments,
    conversations,
    messages,
    outbox,
    runs,
)
from services.agent.agents import SETTABLE
from services.agent.ports_admin import AgentList

LAST_SEQ = literal(2**63 - 1, BigInteger)
NEW_AGENT = ("organization_id", "id", *SETTABLE, "created_by_id", "last_updated_by_id")


def present(organization_id: Any) -> Select[Any]:
    """The tenant's agents that are not deleted."""
    return select(agents).where(agents.c.organization_id == organization_id, agents.c.deleted_at.is_(None))


def filters(wanted: AgentList) -> list[ColumnElement[bool]]:
    """What a list asks for, but for its page."""
    chosen: list[ColumnElement[bool]] = []
    if wanted.name is not None:
        chosen.append(agents.c.name == wanted.name)
    if wanted.query_text:
        chosen.append(agents.c.name.icontains(wanted.query_text, autoescape=True))
    if wanted.tags:
        tags = list(wanted.tags)
        chosen.append(agents.c.tags.contains(tags) if wanted.match_all_tags else agents.c.tags.overlap(tags))
    if not wanted.show_hidden:
        chosen.append(agents.c.hidden.is_(False))
    return chosen


def whole(found: Select[Any], ordering: Callable[[FromClause], Iterable[Any]] = lambda rows: ()) -> Select[Any]:
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
    """Ids of the messages that a turn in the default conversation would begin with; see WINDOW in sql.py."""
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
        .correlate(head, segment)
        .lateral("of_segment")
    )
    its_segments = and_(
        segment.c.organization_id == head.c.organization_id,
        segment.c.conversation_id == head.c.conversation_id,
        segment.c.ordinal >= head.c.window_ordinal,
    )
    newest = (
        select(of_segment.c.id, segment.c.ordinal, of_segment.c.seq)
        .select_from(head.join(segment, its_segments).join(of_segment, true()))
        .where(head.c.organization_id == rows.c.organization_id, head.c.conversation_id == rows.c.id)
        .order_by(segment.c.ordinal.desc(), of_segment.c.seq.desc())
        .limit(WINDOW_MESSAGES)
        .correlate(rows)
        .lateral("newest")
    )
    oldest_first = postgresql.aggregate_order_by(newest.c.id, newest.c.ordinal, newest.c.seq)
    return select(func.array_agg(oldest_first, type_=postgresql.ARRAY(Uuid)).label("window")).lateral("view")


def _given(table: Table, name: str, column: str = "") -> BindParameter[Any]:
    return bindparam(f"given_{name}", type_=table.c[column or name].type)


def _reservation() -> Delete:
    return delete(outbox).where(
        outbox.c.organization_id == _given(outbox, "organization_id"),
        outbox.c.id == _given(outbox, "reservation", "id"),
        # Else its parts are being swept.
        outbox.c.attempts == 0,
    )


def _reserve() -> Any:
    taken = exists().where(
        agents.c.organization_id == _given(agents, "organization_id"), agents.c.id == _given(agents, "id")
    )
    row = {
        "organization_id": _given(outbox, "organization_id"),
        "id": _given(outbox, "reservation", "id"),
        "kind": literal("purge_orphan"),
        "subject_id": _given(agents, "id"),
        "payload": _given(outbox, "payload"),
        "not_before": func.now() + text("interval '1 hour'"),
    }
    made = postgresql.insert(outbox).from_select([*row], select(*row.values()).where(~taken))
    return made.on_conflict_do_update(
        index_elements=["organization_id", "id"],
        set_={"not_before": made.excluded.not_before},
        where=outbox.c.attempts == 0,
    ).returning(outbox.c.id)


def _insert() -> Select[Any]:
    """The reservation goes, and out of it the agent and its default conversation come: the commit point."""
    reservation = _reservation().returning(outbox.c.id).cte("reservation")
    source = select(*(_given(agents, name) for name in NEW_AGENT)).select_from(reservation)
    made = insert(agents).from_select([*NEW_AGENT], source).returning(agents).cte("made")
    log_id = bindparam("given_log_id", type_=Uuid)
    conversation = _insert_from(
        made, conversations, id=made.c.id, agent_id=made.c.id, created_by_id=made.c.created_by_id
    )
    segment = _insert_from(
        made,
        conversation_segments,
        conversation_id=made.c.id,
        ordinal=literal(0),
        log_id=log_id,
        from_seq=literal(1),
    )
    head = _insert_from(made, conversation_heads, conversation_id=made.c.id, log_id=log_id)
    return select(made).add_cte(conversation, segment, head)


def _insert_from(made: FromClause, table: Table, **columns: ColumnElement[Any]) -> Any:
    source = select(made.c.organization_id, *columns.values())
    return insert(table).from_select(["organization_id", *columns], source).cte(f"made_{table.name}")


def given(**values: Any) -> dict[str, Any]:
    """Parameters of the statements below."""
    return {f"given_{name}": value for name, value in values.items()}


# Parameters: organization_id, id, reservation, payload.
RESERVE = _reserve()
# organization_id, reservation
RELEASE = _reservation()
# NEW_AGENT, reservation, log_id
INSERT = _insert()
# organization_id, id
GET = whole(present(_given(agents, "organization_id")).where(agents.c.id == _given(agents, "id")))
