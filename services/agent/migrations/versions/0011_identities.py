"""Identities that agents serve, groups of agents, and the template an agent was made from."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_CHANGES = """
CREATE TABLE agent.identities (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    identifier_key text NOT NULL,
    name text NOT NULL,
    identity_type text NOT NULL CHECK (identity_type IN ('org', 'user', 'other')),
    -- [{"key", "value", "type": "string" | "number" | "boolean" | "json"}]
    properties jsonb NOT NULL DEFAULT '[]',
    project_id text,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, id)
);
CREATE UNIQUE INDEX identities_by_key
    ON agent.identities (organization_id, identifier_key, coalesce(project_id, ''));
CREATE INDEX identities_by_creation ON agent.identities (organization_id, created_at, id);

CREATE TABLE agent.agent_identities (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    identity_id uuid NOT NULL,
    attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, agent_id, identity_id),
    FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, identity_id) REFERENCES agent.identities (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_identities_by_identity ON agent.agent_identities (organization_id, identity_id, attached_at);

CREATE TABLE agent.groups (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    description text NOT NULL,
    manager_type text NOT NULL CHECK (manager_type IN
        ('round_robin', 'supervisor', 'dynamic', 'sleeptime', 'voice_sleeptime', 'swarm')),
    manager_agent_id uuid,
    -- max_turns, termination_token, sleeptime_agent_frequency, min_message_buffer_length, max_message_buffer_length
    manager_settings jsonb NOT NULL DEFAULT '{}',
    -- Blocks of all its members; memory has the attachments.
    shared_block_ids uuid[] NOT NULL DEFAULT '{}',
    hidden boolean NOT NULL DEFAULT false,
    project_id text,
    template_id text,
    base_template_id text,
    deployment_id text,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX groups_by_creation ON agent.groups (organization_id, created_at, id);
CREATE INDEX groups_by_manager ON agent.groups (organization_id, manager_agent_id);

CREATE TABLE agent.group_agents (
    organization_id uuid NOT NULL,
    group_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    position integer NOT NULL,
    PRIMARY KEY (organization_id, group_id, agent_id),
    FOREIGN KEY (organization_id, group_id) REFERENCES agent.groups (organization_id, id) ON DELETE CASCADE,
    FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX group_agents_by_agent ON agent.group_agents (organization_id, agent_id);

ALTER TABLE agent.agents
    ADD COLUMN enable_sleeptime boolean NOT NULL DEFAULT false,
    -- Where it was made from a template: its version, the template, and those that were made together.
    ADD COLUMN template_id text,
    ADD COLUMN base_template_id text,
    ADD COLUMN deployment_id text,
    ADD COLUMN entity_id text;
CREATE INDEX agents_by_deployment ON agent.agents (organization_id, deployment_id) WHERE deployment_id IS NOT NULL
"""


def upgrade() -> None:
    """Adds columns and tables; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
