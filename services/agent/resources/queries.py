"""Connections, conditions and ids that the stores of resources share."""

from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, FromClause, Text, cast
from sqlalchemy.ext.asyncio import AsyncEngine

_LAST_ID = 2**128 - 1


def autocommit(engine: AsyncEngine) -> AsyncEngine:
    """Returns the same pool for single statements: without BEGIN and ROLLBACK around each."""
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def matches(table: FromClause, **values: Any) -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that columns have these values."""
    return tuple(table.c[name] == value for name, value in values.items())


def equal_to(table: FromClause, filters: Any, *names: str) -> list[ColumnElement[bool]]:
    """Returns the conditions that columns have the values of a list's filters; None filters nothing."""
    return [table.c[name] == value for name in names if (value := getattr(filters, name)) is not None]


def shown_as(ids: ColumnElement[UUID], message_id: UUID) -> ColumnElement[bool]:
    """Returns the condition for messages that are shown under an id; the first by id is the one that has it.

    Calls that wait for the client are shown under the id before that of their message; see `messages.piece_id`.
    """
    return ids.in_((message_id, UUID(int=min(message_id.int + 1, _LAST_ID))))


def json_pairs(columns: Any, *names: str) -> list[Any]:
    """Returns the arguments of jsonb_build_object for these columns."""
    return [part for name in names for part in (cast(name, Text), columns[name])]
