"""Identities in statements: columns that hold ids, and JSON that holds whole identities."""

from typing import Any

from sqlalchemy import ColumnElement, FromClause, Uuid, func, select, type_coerce
from sqlalchemy.dialects import postgresql

from services.agent.resources.identities.model import Identity
from services.agent.resources.queries import json_pairs
from services.agent.resources.tables import agent_identities, identities
from services.common.core.records import names_in


def agents_of(rows: FromClause) -> ColumnElement[Any]:
    """Returns ids of the agents that serve the identity of a row, in the order of attachment."""
    link = agent_identities
    ordered = postgresql.aggregate_order_by(link.c.agent_id, link.c.attached_at, link.c.agent_id)
    agent_ids = (
        select(func.array_agg(ordered))
        .where(link.c.organization_id == rows.c.organization_id, link.c.identity_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(agent_ids, postgresql.ARRAY(Uuid)).label("agent_ids")


def identities_of_agent(rows: FromClause) -> ColumnElement[Any]:
    """Returns the identities that the agent of a row serves: a JSON array, null for none."""
    link = agent_identities
    objects = func.jsonb_build_object(*json_pairs(identities.c, *names_in(Identity, identities.c.keys())))
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
