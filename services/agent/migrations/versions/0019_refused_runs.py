"""The replicas that gave a queued run back, because a newer release wrote it."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column."""
    op.execute("ALTER TABLE agent.run_queue ADD COLUMN refused_by uuid[] NOT NULL DEFAULT '{}'")


def downgrade() -> None:
    """Drops it."""
    op.execute("ALTER TABLE agent.run_queue DROP COLUMN refused_by")
