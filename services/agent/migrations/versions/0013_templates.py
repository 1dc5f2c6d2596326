"""Templates of agents and their versions."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_CHANGES = """
CREATE TABLE agent.templates (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    description text,
    project_id text,
    -- The newest saved version; 0: none.
    latest_version integer NOT NULL DEFAULT 0,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, name)
);

-- Version 0 is the one that is worked on; a saved one never changes.
CREATE TABLE agent.template_versions (
    organization_id uuid NOT NULL,
    template_id uuid NOT NULL,
    version integer NOT NULL,
    -- An agent file in its current form, without what was said.
    agent_file jsonb NOT NULL,
    message text,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, template_id, version),
    FOREIGN KEY (organization_id, template_id) REFERENCES agent.templates (organization_id, id) ON DELETE CASCADE
)
"""


def upgrade() -> None:
    """Adds tables; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
