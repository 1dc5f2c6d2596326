"""How far each group has come: its manager's turns, and what its members have read of them."""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_UPGRADE = """
CREATE TABLE agent.group_progress (
    organization_id uuid NOT NULL,
    group_id uuid NOT NULL,
    turns bigint NOT NULL DEFAULT 0,
    -- When the last message was made that they have read; null while they have read none.
    read_until timestamptz,
    PRIMARY KEY (organization_id, group_id),
    FOREIGN KEY (organization_id, group_id) REFERENCES agent.groups (organization_id, id) ON DELETE CASCADE
);
"""


def upgrade() -> None:
    """Creates the table."""
    op.execute(_UPGRADE)


def downgrade() -> None:
    """Drops it."""
    op.execute("DROP TABLE agent.group_progress")
