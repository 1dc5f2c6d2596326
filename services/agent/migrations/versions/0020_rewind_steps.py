"""Rewinds that have begun and hold their conversation, with what is left to do."""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_UP = """
CREATE TABLE agent.begun_rewinds (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    to_kind text NOT NULL CHECK (to_kind IN ('input', 'step', 'run')),
    to_id uuid NOT NULL,
    -- The blocks to set back, and their versions; see PlannedBlock.
    plan jsonb NOT NULL,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, conversation_id),
    CONSTRAINT begun_rewinds_id_key UNIQUE (organization_id, id),
    FOREIGN KEY (organization_id, conversation_id)
        REFERENCES agent.conversations (organization_id, id) ON DELETE CASCADE
);

-- Who may have the turn of a conversation, and goes on.
CREATE VIEW agent.turn_holders AS
SELECT organization_id, id FROM agent.runs WHERE status = 'running'
UNION ALL SELECT organization_id, id FROM agent.begun_rewinds
"""


def upgrade() -> None:
    """Makes the table and the view."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    op.execute("DROP VIEW agent.turn_holders")
    op.execute("DROP TABLE agent.begun_rewinds")
