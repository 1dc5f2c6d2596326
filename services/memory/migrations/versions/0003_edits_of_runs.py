"""The versions of blocks that a run made: who goes back to one of its steps asks for them."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds an index; no row changes."""
    op.execute(
        "CREATE INDEX block_history_by_run ON memory.block_history (organization_id, run_id) WHERE run_id IS NOT NULL"
    )


def downgrade() -> None:
    """Removes it."""
    op.execute("DROP INDEX memory.block_history_by_run")
