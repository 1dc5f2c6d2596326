"""Keys of tenants, and the restricted tokens that they mint for browsers."""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_CHANGES = """
-- What opens the door, and nothing else: found before the tenant is known. 256 random bits need no salt.
CREATE TABLE agent.credentials (
    hash bytea PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('api_key', 'client_token')),
    organization_id uuid NOT NULL,
    id uuid NOT NULL
);
COMMENT ON TABLE agent.credentials IS 'reference: a credential is looked up before its tenant is known';
CREATE INDEX credentials_by_owner ON agent.credentials (organization_id, id);

CREATE TABLE agent.api_keys (
    organization_id uuid NOT NULL REFERENCES agent.organizations (organization_id),
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    name text NOT NULL,
    -- Its first characters, for people.
    hint text NOT NULL,
    role text NOT NULL CHECK (role IN ('admin', 'developer', 'agent-only', 'read-only')),
    -- Of the role agent-only: which agents it may reach; empty: every one of the tenant.
    agent_ids uuid[] NOT NULL DEFAULT '{}',
    -- Null: the setting's.
    requests_per_minute integer,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    -- At most a minute behind.
    last_used_at timestamptz,
    PRIMARY KEY (organization_id, id),
    FOREIGN KEY (organization_id, user_id) REFERENCES agent.users (organization_id, id)
);
CREATE INDEX api_keys_by_creation ON agent.api_keys (organization_id, created_at, id);

-- For browsers: a few agents, what may be done with each, one origin, and an end.
CREATE TABLE agent.client_tokens (
    organization_id uuid NOT NULL REFERENCES agent.organizations (organization_id),
    id uuid NOT NULL,
    user_id uuid NOT NULL,
    hostname text NOT NULL,
    -- [{"type": "agent", "id": "agent-...", "access": ["read_messages", ...]}]
    policy jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX client_tokens_by_creation ON agent.client_tokens (organization_id, created_at, id);
CREATE INDEX client_tokens_by_end ON agent.client_tokens (expires_at)
"""


def upgrade() -> None:
    """Adds tables; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
