"""Vectors wait outside of their model's index until a job takes them in."""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_UP = """
-- A vector that waits is found by reading it; what does not wait is in the index of its model, where there is one.
-- To put a vector into such an index takes milliseconds, for which nobody who stores one should wait.
ALTER TABLE memory.passage_vectors ADD COLUMN waiting boolean NOT NULL DEFAULT true;
CREATE INDEX passage_vectors_waiting ON memory.passage_vectors (model_id, organization_id, archive_id) WHERE waiting
"""


def upgrade() -> None:
    """Adds the column; there is no index of a model yet, so all vectors wait."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes it, and with it the models' indexes, which were over what does not wait."""
    op.execute("ALTER TABLE memory.passage_vectors DROP COLUMN waiting")
