"""Messages that are sent at their time, and remote devices with the messages that wait for them."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_CHANGES = """
CREATE TABLE agent.schedules (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    -- For whom its runs are.
    user_id uuid NOT NULL,
    schema_version smallint NOT NULL,
    -- What is sent: messages and options of a turn, as the line of a conversation holds them.
    input jsonb NOT NULL,
    -- Null: once.
    cron text,
    timezone text NOT NULL,
    -- The time that it is sent for next, or was: of each there is one run.
    due_at timestamptz NOT NULL,
    -- When that is tried, which is later after failures; null: never again.
    next_at timestamptz,
    -- Attempts in a row that began no run.
    attempts smallint NOT NULL DEFAULT 0,
    last_at timestamptz,
    last_run_id uuid,
    -- Why the newest attempt began no run; null: it did.
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, id),
    FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX schedules_by_time ON agent.schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_by_agent ON agent.schedules (organization_id, agent_id, created_at, id);

CREATE TABLE agent.devices (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    -- Its own name for itself, kept over connections.
    device_id text NOT NULL,
    name text NOT NULL,
    user_id uuid NOT NULL,
    source text NOT NULL DEFAULT 'remote' CHECK (source IN ('local', 'remote')),
    -- Of its newest registration, by which it connects.
    connection_id uuid NOT NULL,
    -- Tells its connections apart; null: it is not connected.
    connected_at timestamptz,
    -- It is lost when this is long ago.
    heartbeat_at timestamptz,
    current_mode text,
    metadata jsonb NOT NULL DEFAULT '{}',
    first_seen_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, device_id)
);
CREATE UNIQUE INDEX devices_by_connection ON agent.devices (organization_id, connection_id);

-- Pushed to a device and not yet acknowledged by it.
CREATE TABLE agent.device_messages (
    organization_id uuid NOT NULL,
    device_id uuid NOT NULL,
    id uuid NOT NULL,
    body jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, device_id, id),
    FOREIGN KEY (organization_id, device_id) REFERENCES agent.devices (organization_id, id) ON DELETE CASCADE
)
"""


def upgrade() -> None:
    """Adds tables; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
