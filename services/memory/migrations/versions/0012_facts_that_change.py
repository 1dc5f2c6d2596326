"""When what a passage says is true, and which passage took its place."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_UP = """
ALTER TABLE memory.passages
    ADD COLUMN key text,
    ADD COLUMN valid_from timestamptz,
    ADD COLUMN valid_to timestamptz,
    ADD COLUMN superseded_by_id uuid;
CREATE INDEX passages_by_key ON memory.passages (organization_id, archive_id, key) WHERE key IS NOT NULL;
CREATE INDEX passages_ended ON memory.passages (organization_id, archive_id, id) WHERE valid_to IS NOT NULL
"""
_DOWN = """
DROP INDEX memory.passages_ended;
DROP INDEX memory.passages_by_key;
ALTER TABLE memory.passages
    DROP COLUMN key, DROP COLUMN valid_from, DROP COLUMN valid_to, DROP COLUMN superseded_by_id
"""


def upgrade() -> None:
    """Adds columns that are null, and indexes of what is not."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    for statement in _DOWN.split(";\n"):
        op.execute(statement)
