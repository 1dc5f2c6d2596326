"""The receipts that an owner has open."""

from services.common.migrations.indexes import add_index, drop_index

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the index."""
    # 1 reserved, 2 started.
    add_index("tool_runner", "receipts_open", "receipts (owner_id) WHERE state IN (1, 2)")


def downgrade() -> None:
    """Removes it."""
    drop_index("tool_runner", "receipts_open")
