"""Columns to open a new file for its agents, the blank end of texts, and blocks of which nobody said they hide."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_UP = """
-- What the agent may have in view, as its service said last: a new file is opened without asking there.
ALTER TABLE memory.agent_folders
    ADD COLUMN most_open integer NOT NULL DEFAULT 5,
    ADD COLUMN view_chars integer NOT NULL DEFAULT 50000;
-- What follows the last line that is not blank; it stands in no page.
ALTER TABLE memory.files ADD COLUMN ending text NOT NULL DEFAULT '';
ALTER TABLE memory.blocks ALTER COLUMN hidden DROP NOT NULL, ALTER COLUMN hidden DROP DEFAULT
"""
_DOWN = """
UPDATE memory.blocks SET hidden = false WHERE hidden IS NULL;
ALTER TABLE memory.blocks ALTER COLUMN hidden SET DEFAULT false, ALTER COLUMN hidden SET NOT NULL;
ALTER TABLE memory.files DROP COLUMN ending;
ALTER TABLE memory.agent_folders DROP COLUMN most_open, DROP COLUMN view_chars
"""


def upgrade() -> None:
    """Adds columns; no row changes."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    for statement in _DOWN.split(";\n"):
        op.execute(statement)
