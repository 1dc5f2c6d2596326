"""What finds old rows of provider_traces."""

from services.common.migrations.indexes import add_index, drop_index

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the index."""
    add_index("agent", "provider_traces_by_age", "provider_traces USING brin (created_at)")


def downgrade() -> None:
    """Removes it."""
    drop_index("agent", "provider_traces_by_age")
