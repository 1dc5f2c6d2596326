"""Blocks that conversations own: copies that stand in the places of an agent's blocks of the same labels."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_CONVERSATION_BLOCKS = """
CREATE TABLE memory.conversation_blocks (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    label text NOT NULL,
    block_id uuid NOT NULL,
    -- Whose conversation it is; its copies go with it.
    agent_id uuid NOT NULL,
    CONSTRAINT conversation_blocks_pkey PRIMARY KEY (organization_id, conversation_id, label),
    CONSTRAINT conversation_blocks_block_fkey FOREIGN KEY (organization_id, block_id, label)
        REFERENCES memory.blocks (organization_id, id, label) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX conversation_blocks_by_block ON memory.conversation_blocks (organization_id, block_id);
CREATE INDEX conversation_blocks_by_agent
    ON memory.conversation_blocks (organization_id, agent_id, conversation_id)
"""


def upgrade() -> None:
    """Makes the table."""
    for statement in _CONVERSATION_BLOCKS.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes it; the copies stay as blocks that nobody owns."""
    op.execute("DROP TABLE memory.conversation_blocks")
