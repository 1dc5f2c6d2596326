"""The searched text of a message that is too long for one vector."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# A vector has 1 MB at most: the words of each further piece of a long message have their own. No index holds an array
# of them; the messages that have any are few, and found by theirs.
_CHANGES = """
ALTER TABLE agent.messages ADD COLUMN search_more tsvector[];
CREATE INDEX messages_long ON agent.messages (organization_id, agent_id) WHERE search_more IS NOT NULL
"""


def upgrade() -> None:
    """Adds the column."""
    for statement in _CHANGES.strip().split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes it."""
    op.execute("ALTER TABLE agent.messages DROP COLUMN search_more")
