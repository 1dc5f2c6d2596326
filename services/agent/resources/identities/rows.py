"""Identities and groups in statements about agents: columns that hold ids, and JSON that holds whole objects."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Text, Uuid, cast, func, select, type_coerce
from sqlalchemy.dialects import postgresql

from services.agent.resources.groups.model import Group
from services.agent.resources.identities.model import Identity
from services.agent.resources.tables import agent_identities, group_agents, groups, identities
from services.common.core.records import names_in


def agents_of(rows: FromClause) -> ColumnElement[Any]:
    """Ids of the agents that serve the identity of a row, in the order of attachment."""
    link = agent_identities
    ordered = postgresql.aggregate_order_by(link.c.agent_id, link.c.attached_at, link.c.agent_id)
    agent_ids = (
        select(func.array_agg(ordered))
        .where(link.c.organization_id == rows.c.organization_id, link.c.identity_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(agent_ids, postgresql.ARRAY(Uuid)).label("agent_ids")


def members_of(rows: FromClause) -> ColumnElement[Any]:
    """Ids of the members of the group of a row, in order."""
    member = group_agents
    agent_ids = (
        select(func.array_agg(postgresql.aggregate_order_by(member.c.agent_id, member.c.position)))
        .where(member.c.organization_id == rows.c.organization_id, member.c.group_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(agent_ids, postgresql.ARRAY(Uuid)).label("agent_ids")


def identities_of_agent(rows: FromClause) -> ColumnElement[Any]:
    """Returns the identities that the agent of a row serves: a JSON array, null for none."""
    link = agent_identities
    objects = func.jsonb_build_object(*_pairs(identities.c, *names_in(Identity, identities.c.keys())))
    array = (
        select(func.jsonb_agg(postgresql.aggregate_order_by(objects, link.c.attached_at, link.c.identity_id)))
        .select_from(
            link.join(
                identities,
                (identities.c.organization_id == link.c.organization_id) & (identities.c.id == link.c.identity_id),
            )
        )
        .where(link.c.organization_id == rows.c.organization_id, link.c.agent_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(array, postgresql.JSONB).label("identities")


def managed_by_agent(rows: FromClause) -> ColumnElement[Any]:
    """The newest group that the agent of a row manages, as a JSON object; null for none."""
    names = names_in(Group, groups.c.keys())
    group = (
        select(func.jsonb_build_object(*_pairs(groups.c, *names), "agent_ids", members_of(groups)))
        .where(groups.c.organization_id == rows.c.organization_id, groups.c.manager_agent_id == rows.c.id)
        .order_by(groups.c.created_at.desc(), groups.c.id.desc())
        .limit(1)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(group, postgresql.JSONB).label("managed_group")


def _pairs(columns: Any, *names: str) -> list[Any]:
    """Arguments of jsonb_build_object."""
    return [part for name in names for part in (cast(name, Text), columns[name])]
