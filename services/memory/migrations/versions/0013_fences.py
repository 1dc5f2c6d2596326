"""The owners of runs whose acts are refused, since a later owner has said so."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_UP = """
CREATE TABLE memory.run_fences (
    organization_id uuid NOT NULL,
    run_id uuid NOT NULL,
    fence bigint NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT run_fences_pkey PRIMARY KEY (organization_id, run_id)
);
CREATE INDEX run_fences_by_time ON memory.run_fences (created_at)
"""


def upgrade() -> None:
    """Makes the table."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes it."""
    op.execute("DROP TABLE memory.run_fences")
