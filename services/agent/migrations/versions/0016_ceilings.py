"""How far whoever began a run, or made a schedule, may go."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns: null for what may do all of its tenant, as everything before."""
    op.execute("ALTER TABLE agent.runs ADD COLUMN ceiling jsonb")
    op.execute("ALTER TABLE agent.schedules ADD COLUMN ceiling jsonb")


def downgrade() -> None:
    """Drops them."""
    op.execute("ALTER TABLE agent.runs DROP COLUMN ceiling")
    op.execute("ALTER TABLE agent.schedules DROP COLUMN ceiling")
