"""The user who changed a conversation last, and the conversations that use a log; it outlives an erased one."""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_CHANGES = """
ALTER TABLE agent.conversations
    -- Null: nobody since it was made.
    ADD COLUMN last_updated_by_id uuid;
CREATE INDEX segments_by_log ON agent.conversation_segments (organization_id, log_id);
"""


def upgrade() -> None:
    """Adds a column and an index; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
