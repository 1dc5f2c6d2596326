"""A tool that says nothing of approvals says so: default_requires_approval may be null."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE tool_runner.tools ALTER COLUMN default_requires_approval DROP NOT NULL, "
        "ALTER COLUMN default_requires_approval DROP DEFAULT"
    )


def downgrade() -> None:
    op.execute("UPDATE tool_runner.tools SET default_requires_approval = false WHERE default_requires_approval IS NULL")
    op.execute(
        "ALTER TABLE tool_runner.tools ALTER COLUMN default_requires_approval SET DEFAULT false, "
        "ALTER COLUMN default_requires_approval SET NOT NULL"
    )
