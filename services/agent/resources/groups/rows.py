"""Groups in statements: columns that hold ids, and JSON that holds whole groups."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Uuid, func, select, type_coerce
from sqlalchemy.dialects import postgresql

from services.agent.resources.groups.model import Group
from services.agent.resources.queries import json_pairs
from services.agent.resources.tables import group_agents, groups
from services.common.core.records import names_in


def members_of(rows: FromClause) -> ColumnElement[Any]:
    """Returns ids of the members of the group of a row, in order."""
    member = group_agents
    agent_ids = (
        select(func.array_agg(postgresql.aggregate_order_by(member.c.agent_id, member.c.position)))
        .where(member.c.organization_id == rows.c.organization_id, member.c.group_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(agent_ids, postgresql.ARRAY(Uuid)).label("agent_ids")


def managed_by_agent(rows: FromClause) -> ColumnElement[Any]:
    """Returns the newest group that the agent of a row manages, as a JSON object; null for none."""
    names = names_in(Group, groups.c.keys())
    group = (
        select(func.jsonb_build_object(*json_pairs(groups.c, *names), "agent_ids", members_of(groups)))
        .where(groups.c.organization_id == rows.c.organization_id, groups.c.manager_agent_id == rows.c.id)
        .order_by(groups.c.created_at.desc(), groups.c.id.desc())
        .limit(1)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(group, postgresql.JSONB).label("managed_group")
