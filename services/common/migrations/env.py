"""The body of every service's `migrations/env.py`:

from services.common.migrations.env import run_migrations

run_migrations()
"""

from alembic import context

from services.common.migrate import VERSION_TABLE


def run_migrations() -> None:
    """Applies the revisions that Alembic asks for, each in a transaction, on the connection of `upgrade`."""
    attributes = context.config.attributes
    context.configure(
        connection=attributes["connection"],
        version_table=VERSION_TABLE,
        version_table_schema=attributes["schema"],
        # So that a revision may step out of it (`op.get_context().autocommit_block()`) for CREATE INDEX
        # CONCURRENTLY.
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()
