"""What finds old rows of runs."""

from services.common.migrations.indexes import add_index, drop_index

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the index."""
    add_index("agent", "runs_by_age", "runs USING brin (created_at)")


def downgrade() -> None:
    """Removes it."""
    drop_index("agent", "runs_by_age")
