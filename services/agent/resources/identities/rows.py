"""Identities and groups, and what statements about agents say of them, from rows and from the JSON of rows."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Text, Uuid, cast, func, select, type_coerce
from sqlalchemy.dialects import postgresql

from services.agent.postgres.tables import agent_identities, group_agents, groups, identities
from services.agent.resources.groups.model import SETTABLE, Group, GroupDraft
from services.agent.resources.identities.model import Identity

_TIMES = ("created_at", "updated_at")


def identity_from_row(row: Mapping[str, Any]) -> Identity:
    """A row of `identities`; with its agents where it has the column of `agents_of`."""
    return Identity(
        id=row["id"],
        identifier_key=row["identifier_key"],
        name=row["name"],
        identity_type=row["identity_type"],
        properties=tuple(row["properties"]),
        project_id=row["project_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        agent_ids=tuple(row.get("agent_ids") or ()),
    )


def group_from_row(row: Mapping[str, Any]) -> Group:
    """A row of `groups` with the column of `members_of`."""
    values = {name: row[name] for name in SETTABLE}
    lists = {name: tuple(row[name] or ()) for name in ("agent_ids", "shared_block_ids")}
    return Group(row["id"], GroupDraft(**values | lists), row["created_at"], row["updated_at"])


def identity_from_json(value: Mapping[str, Any]) -> Identity:
    """The same from `identities_of_agent`."""
    return identity_from_row({**value, "id": UUID(value["id"]), **_times(value)})


def group_from_json(value: Mapping[str, Any]) -> Group:
    """The same from `managed_by_agent`."""
    manager = value["manager_agent_id"]
    typed = {"id": UUID(value["id"]), "manager_agent_id": None if manager is None else UUID(manager)}
    lists = {name: [UUID(each) for each in value[name] or ()] for name in ("agent_ids", "shared_block_ids")}
    return group_from_row({**value, **typed, **lists, **_times(value)})


def agents_of(rows: FromClause) -> ColumnElement[Any]:
    """Ids of the agents that serve the identity of a row, in the order of attachment."""
    link = agent_identities
    ordered = postgresql.aggregate_order_by(link.c.agent_id, link.c.attached_at, link.c.agent_id)
    found = (
        select(func.array_agg(ordered))
        .where(link.c.organization_id == rows.c.organization_id, link.c.identity_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(found, postgresql.ARRAY(Uuid)).label("agent_ids")


def members_of(rows: FromClause) -> ColumnElement[Any]:
    """Ids of the members of the group of a row, in order."""
    member = group_agents
    found = (
        select(func.array_agg(postgresql.aggregate_order_by(member.c.agent_id, member.c.position)))
        .where(member.c.organization_id == rows.c.organization_id, member.c.group_id == rows.c.id)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(found, postgresql.ARRAY(Uuid)).label("agent_ids")


def identities_of_agent(rows: FromClause) -> ColumnElement[Any]:
    """Whom the agent of a row serves: a JSON array, null for nobody."""
    link = agent_identities
    objects = func.jsonb_build_object(*_pairs(identities.c, "id", *_identity_columns()))
    found = (
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
    return type_coerce(found, postgresql.JSONB).label("identities")


def managed_by_agent(rows: FromClause) -> ColumnElement[Any]:
    """The newest group that the agent of a row manages, as a JSON object; null for none."""
    names = ("id", *sorted(SETTABLE - {"agent_ids"}), *_TIMES)
    found = (
        select(func.jsonb_build_object(*_pairs(groups.c, *names), "agent_ids", members_of(groups)))
        .where(groups.c.organization_id == rows.c.organization_id, groups.c.manager_agent_id == rows.c.id)
        .order_by(groups.c.created_at.desc(), groups.c.id.desc())
        .limit(1)
        .correlate(rows)
        .scalar_subquery()
    )
    return type_coerce(found, postgresql.JSONB).label("managed_group")


def _identity_columns() -> tuple[str, ...]:
    return ("identifier_key", "name", "identity_type", "properties", "project_id", *_TIMES)


def _pairs(columns: Any, *names: str) -> list[Any]:
    """Arguments of jsonb_build_object."""
    return [part for name in names for part in (cast(name, Text), columns[name])]


def _times(value: Mapping[str, Any]) -> dict[str, datetime]:
    return {name: datetime.fromisoformat(value[name]) for name in _TIMES}
