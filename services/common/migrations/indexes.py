"""Indexes of tables that are in use: made while others write."""

from alembic import op

from services.common.migrations.locks import limit_waiting


def add_index(schema: str, name: str, definition: str) -> None:
    """Makes an index on `definition` (table, columns, condition). It is the only thing that its revision does: it ends
    the transaction, and a try that was cut short leaves a broken index, which the next one makes anew.
    """
    with op.get_context().autocommit_block():
        # It waits for all who write now, and holds up nobody meanwhile.
        op.execute("SET lock_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}")
        op.execute(f"CREATE INDEX CONCURRENTLY {name} ON {schema}.{definition}")
        op.execute(limit_waiting())


def drop_index(schema: str, name: str) -> None:
    """Removes it."""
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {schema}.{name}")
