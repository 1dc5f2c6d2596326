"""Statements that read agents. Those that never vary are built once: that costs more than to run them."""

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
    exists,
    func,
    literal,
    null,
    select,
    true,
    type_coerce,
)
from sqlalchemy.dialects import postgresql

from services.agent.postgres.conversations import WINDOW_MESSAGES
from services.agent.resources.agents.ports import AgentList
from services.agent.resources.groups.rows import managed_by_agent
from services.agent.resources.identities.rows import identities_of_agent
from services.agent.resources.tables import (
    MESSAGE_COLUMNS,
    agent_identities,
    agents,
    conversation_heads,
    conversation_segments,
    identities,
    messages,
    runs,
)
from services.common.core.storable import storable_name

LAST_SEQ = literal(2**63 - 1, BigInteger)
# Before the names of the columns of a message that waits for the client.
WAITING = "waiting_"


def present(organization_id: Any, *columns: ColumnElement[Any]) -> Select[Any]:
    """Returns the tenant's agents that are not deleted; `columns` of them, or all."""
    query = select(*columns or (agents,))
    return query.where(agents.c.organization_id == organization_id, agents.c.deleted_at.is_(None))


def conditions_of(filters: AgentList) -> list[ColumnElement[bool]]:
    """Returns the conditions of a list's filters."""
    conditions: list[ColumnElement[bool]] = []
    if filters.name is not None:
        conditions.append(agents.c.name == filters.name)
    if filters.query_text:
        conditions.append(agents.c.name.icontains(filters.query_text, autoescape=True))
    if filters.tags:
        tags = [storable_name(tag) for tag in filters.tags]
        conditions.append(agents.c.tags.contains(tags) if filters.match_all_tags else agents.c.tags.overlap(tags))
    if not filters.show_hidden:
        conditions.append(agents.c.hidden.is_not(True))
    else:
        # Those that stand for groups; see groups/turns.py.
        conditions.append(agents.c.model != "")
    for name in ("template_id", "base_template_id", "deployment_id", "project_id", "created_by_id"):
        if (value := getattr(filters, name)) is not None:
            conditions.append(agents.c[name] == value)
    if filters.identity_id is not None:
        conditions.append(_serves(agent_identities.c.identity_id == filters.identity_id))
    if filters.identifier_keys:
        conditions.append(_serves(identities.c.identifier_key.in_(filters.identifier_keys)))
    if filters.last_stop_reason is not None:
        conditions.append(_of_last_run(runs.c.stop_reason) == filters.last_stop_reason)
    return conditions


def order_time(filters: AgentList) -> ColumnElement[Any]:
    """Returns the time by which a list is ordered, named as the order is."""
    if filters.order_by == "last_run_completion":
        # Agents that never ran come as if they had before all others.
        completed = func.coalesce(_of_last_run(runs.c.completed_at), func.to_timestamp(0))
        return type_coerce(completed, agents.c.created_at.type).label(filters.order_by)
    return agents.c[filters.order_by]


def whole(query: Select[Any]) -> Select[Any]:
    """Returns the agents that `found` selects, in no order.

    Each with its window, its last run, what waits there, whom it serves and what it manages.
    """
    rows = query.subquery("found")
    last, window, waiting = _last_run(rows).lateral("last_run"), window_of(rows), _waiting(rows)
    joined = rows.outerjoin(last, true()).outerjoin(window, true()).outerjoin(waiting, true())
    others = identities_of_agent(rows), managed_by_agent(rows)
    return select(rows, last, window, waiting, *others).select_from(joined)


def _last_run(rows: FromClause) -> Select[Any]:
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
    )


def _of_last_run(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """Returns a column of the last run of an agent; null for one that never ran."""
    return _last_run(agents).with_only_columns(column).correlate(agents).scalar_subquery()


def _serves(which: ColumnElement[bool]) -> ColumnElement[bool]:
    """Returns whether an agent serves such an identity."""
    link = agent_identities
    identity = and_(identities.c.organization_id == link.c.organization_id, identities.c.id == link.c.identity_id)
    of_agent = and_(link.c.organization_id == agents.c.organization_id, link.c.agent_id == agents.c.id)
    return exists().select_from(link.join(identities, identity)).where(of_agent, which).correlate(agents)


def _waiting(rows: FromClause) -> FromClause:
    """Returns the message of the default conversation whose calls wait for the client, and until when."""
    head = conversation_heads
    its_message = and_(messages.c.organization_id == head.c.organization_id, messages.c.id == head.c.pending_message_id)
    return (
        select(head.c.approval_due, *(column.label(WAITING + column.name) for column in MESSAGE_COLUMNS))
        .select_from(head.join(messages, its_message))
        .where(head.c.organization_id == rows.c.organization_id, head.c.conversation_id == rows.c.id)
        # The bound keeps it apart: joined freely, and before its tables are analysed, it is read from all heads of
        # the tenant for each agent.
        .limit(1)
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
    """Returns a parameter of a statement that is built once, of the type of its column."""
    return bindparam(f"given_{name}", type_=table.c[column or name].type)


def parameters(**values: Any) -> dict[str, Any]:
    """Returns parameters for statements that are built once."""
    return {f"given_{name}": value for name, value in values.items()}


# organization_id, id
GET = whole(present(parameter(agents, "organization_id")).where(agents.c.id == parameter(agents, "id")))
# organization_id, ids
MANY = whole(
    present(parameter(agents, "organization_id")).where(
        agents.c.id == func.any(bindparam("given_ids", type_=postgresql.ARRAY(Uuid)))
    )
)
