"""Columns as all tables of the schema `memory` have them."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    FromClause,
    MetaData,
    Table,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, dialect

from services.common.core.records import names_in

metadata = MetaData(schema="memory")


def id_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """Returns a UUID."""
    return Column(name, Uuid, nullable=nullable)


def time(name: str) -> Column[Any]:
    """Returns a time; now unless given."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def flag(name: str) -> Column[Any]:
    """Returns False unless given."""
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def count(name: str) -> Column[Any]:
    """Returns a column that is zero unless given."""
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def json(*, default: bool = True) -> Column[Any]:
    """Returns the column `metadata`, an object."""
    return Column("metadata", JSONB, nullable=False, server_default=text("'{}'") if default else None)


def texts(name: str) -> Column[Any]:
    """Returns None unless given."""
    return Column(name, ARRAY(Text), nullable=False, server_default=text("'{}'"))


def sql_type(column: Column[Any]) -> str:
    """Returns the name of a column's type."""
    return str(column.type.compile(dialect=dialect()))  # type: ignore[no-untyped-call]


def select_list(alias: str, of: type[Any], table: Table) -> str:
    """Returns SQL for the columns of a table `alias` that a dataclass has, under the names of its fields."""
    return ", ".join(f'{alias}.{table.c[name].name} AS "{name}"' for name in names_in(of, table.c.keys()))


def by_key(table: FromClause) -> list[ColumnElement[Any]]:
    """Returns the columns of a table under the names of the fields that they are for."""
    return [column.label(column.key) for column in table.c]
