"""Whom blocks are about."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_CHANGES = """
CREATE TABLE memory.block_identities (
    organization_id uuid NOT NULL,
    block_id uuid NOT NULL,
    -- The agent service has them.
    identity_id uuid NOT NULL,
    attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT block_identities_pkey PRIMARY KEY (organization_id, block_id, identity_id),
    CONSTRAINT block_identities_block_fkey FOREIGN KEY (organization_id, block_id)
        REFERENCES memory.blocks (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX block_identities_by_identity ON memory.block_identities (organization_id, identity_id, attached_at)
"""


def upgrade() -> None:
    """Adds a table; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
