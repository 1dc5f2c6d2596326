"""The key with which a client token was made, and with which it ends."""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the column: null for tokens that no key made, as far as is known of those from before."""
    op.execute("ALTER TABLE agent.client_tokens ADD COLUMN key_id uuid")
    op.execute("CREATE INDEX client_tokens_by_key ON agent.client_tokens (organization_id, key_id)")


def downgrade() -> None:
    """Drops it."""
    op.execute("ALTER TABLE agent.client_tokens DROP COLUMN key_id")
