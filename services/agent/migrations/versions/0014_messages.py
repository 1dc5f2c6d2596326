"""Messages whose text was changed, all messages of a tenant by time, and the transactions of steps."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_CHANGES = """
-- What a message said before somebody changed it: the row in agent.messages says what is shown, this is what it was
-- shown as until then.
CREATE TABLE agent.message_revisions (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    -- From 1, the oldest.
    number integer NOT NULL,
    content jsonb NOT NULL,
    replaced_by_id uuid NOT NULL,
    replaced_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, message_id, number),
    FOREIGN KEY (organization_id, message_id) REFERENCES agent.messages (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX messages_by_creation ON agent.messages (organization_id, created_at, id);
-- Of the caller's own accounts: nothing here reads it.
ALTER TABLE agent.steps ADD COLUMN tid text
"""


def upgrade() -> None:
    """Adds a table, an index and a column; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
