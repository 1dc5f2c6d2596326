"""Settings of an agent that no client set are null, as clients see them."""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_COLUMNS = {"hidden": "false", "enable_sleeptime": "false", "metadata": "'{}'"}


def upgrade() -> None:
    """Allows null, and makes it the default."""
    for column in _COLUMNS:
        op.execute(f"ALTER TABLE agent.agents ALTER COLUMN {column} DROP NOT NULL, ALTER COLUMN {column} DROP DEFAULT")


def downgrade() -> None:
    """Fills in what an unset value counts as."""
    for column, usual in _COLUMNS.items():
        op.execute(f"UPDATE agent.agents SET {column} = {usual} WHERE {column} IS NULL")
        op.execute(
            f"ALTER TABLE agent.agents ALTER COLUMN {column} SET DEFAULT {usual}, ALTER COLUMN {column} SET NOT NULL"
        )
