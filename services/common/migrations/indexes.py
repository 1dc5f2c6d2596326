"""Indexes of tables that are in use: made while others write."""

from alembic import op


def add_index(schema: str, name: str, definition: str) -> None:
    """Makes an index on `definition` (table, columns, condition). It is the only thing that its revision does: it ends
    the transaction, and a try that was cut short leaves a broken index, which the next one makes anew.
    """
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}")
        op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {schema}.{definition}")


def drop_index(schema: str, name: str) -> None:
    """Removes it."""
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}")
