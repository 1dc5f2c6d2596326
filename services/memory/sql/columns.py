"""Columns as all tables of the schema `memory` have them."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    MetaData,
    Text,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

metadata = MetaData(schema="memory")


def id_column(name: str, *, nullable: bool = False) -> Column[Any]:
    """A UUID."""
    return Column(name, Uuid, nullable=nullable)


def time(name: str) -> Column[Any]:
    """A time; now unless given."""
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now())


def flag(name: str) -> Column[Any]:
    """False unless given."""
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def count(name: str) -> Column[Any]:
    """Zero unless given."""
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def json(*, default: bool = True) -> Column[Any]:
    """The column `metadata`, an object."""
    return Column("metadata", JSONB, nullable=False, server_default=text("'{}'") if default else None)


def texts(name: str) -> Column[Any]:
    """None unless given."""
    return Column(name, ARRAY(Text), nullable=False, server_default=text("'{}'"))
