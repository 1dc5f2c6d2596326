"""Statements that read agents. Those that never vary are built once: that costs more than to run them."""

from collections.abc import Callable, Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    FromClause,
    Select,
    Table,
    Uuid,
    and_,
    bindparam,
    case,
    func,
    literal,
    null,
    select,
    true,
    type_coerce,
)
from sqlalchemy.dialects import postgresql

from services.agent.adapters.admin.tables import (
    MESSAGE_COLUMNS,
    agents,
    conversation_heads,
    conversation_segments,
    messages,
    runs,
)
from services.agent.adapters.conversations import WINDOW_MESSAGES
from services.agent.admin.ports_admin import AgentList

LAST_SEQ = literal(2**63 - 1, BigInteger)
# Before the names of the columns of a message that waits for the client.
WAITING = "waiting_"


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
    """The agents that `found` selects, each with its window, its last run and what waits there, in one statement."""
    rows = found.subquery("found")
    last, window, waiting = _last_run(rows), window_of(rows), _waiting(rows)
    joined = rows.outerjoin(last, true()).outerjoin(window, true()).outerjoin(waiting, true())
    return select(rows, last, window, waiting).select_from(joined).order_by(*ordering(rows))


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


def _waiting(rows: FromClause) -> FromClause:
    """The message of the default conversation whose calls wait for the client, and until when."""
    head = conversation_heads
    its_message = and_(messages.c.organization_id == head.c.organization_id, messages.c.id == head.c.pending_message_id)
    return (
        select(head.c.approval_due, *(column.label(WAITING + column.name) for column in MESSAGE_COLUMNS))
        .select_from(head.join(messages, its_message))
        .where(head.c.organization_id == rows.c.organization_id, head.c.conversation_id == rows.c.id)
        .lateral("waiting")
    )


def window_of(rows: FromClause) -> FromClause:
    """Ids of the messages that a turn in the conversation with the id of a row would begin with; see WINDOW in sql.py.

    The summary of what was before comes first.

    An agent's id is that of its default conversation.
    """
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
            messages.c.role != "summary",
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
    summary = (
        select(head.c.summary_id)
        .where(head.c.organization_id == rows.c.organization_id, head.c.conversation_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    # Without a summary a null is put first, and removed.
    ids = func.array_remove(func.array_prepend(summary, func.array_agg(oldest_first)), null())
    return select(type_coerce(ids, postgresql.ARRAY(Uuid)).label("window")).lateral("view")


def parameter(table: Table, name: str, column: str = "") -> BindParameter[Any]:
    """A parameter of a statement that is built once, of the type of its column."""
    return bindparam(f"given_{name}", type_=table.c[column or name].type)


def given(**values: Any) -> dict[str, Any]:
    """Parameters for statements that are built once."""
    return {f"given_{name}": value for name, value in values.items()}


# organization_id, id
GET = whole(present(parameter(agents, "organization_id")).where(agents.c.id == parameter(agents, "id")))
