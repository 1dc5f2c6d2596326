"""The system prompts of agents, which the first facts of their runs name."""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the table."""
    op.execute("""
        CREATE TABLE agent.system_prompts (
            organization_id uuid NOT NULL,
            agent_id uuid NOT NULL,
            hash bytea NOT NULL,
            text text NOT NULL,
            created_at timestamptz NOT NULL DEFAULT now(),
            PRIMARY KEY (organization_id, agent_id, hash),
            FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
        )""")


def downgrade() -> None:
    """Removes it."""
    op.execute("DROP TABLE agent.system_prompts")
