"""Tools, receipts of their calls, and the replicas that run them.

Every key begins with organization_id.
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# JSON is text here: what a client gave comes back byte for byte, and the order of arguments is what a model sees.
_TOOLS = """
CREATE TABLE tool_runner.tools (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    description text NOT NULL,
    tool_type text NOT NULL,
    source_type text NOT NULL,
    source_code text NOT NULL,
    json_schema text NOT NULL,
    args_json_schema text NOT NULL DEFAULT '',
    tags text[] NOT NULL DEFAULT '{}',
    return_char_limit integer NOT NULL,
    default_requires_approval boolean NOT NULL DEFAULT false,
    enable_parallel_execution boolean NOT NULL DEFAULT false,
    idempotent boolean NOT NULL DEFAULT false,
    metadata text NOT NULL DEFAULT '{}',
    pip_requirements text NOT NULL DEFAULT '',
    npm_requirements text NOT NULL DEFAULT '',
    project_id text,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    CONSTRAINT tools_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT tools_name_key UNIQUE (organization_id, name)
);
CREATE INDEX tools_by_creation ON tool_runner.tools (organization_id, created_at, id);
"""

_RECEIPTS = """
-- A replica's lease, beaten twice a second while it runs calls; without calls it may lapse.
CREATE TABLE tool_runner.workers (
    id uuid PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    beat_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON TABLE tool_runner.workers IS 'reference: a replica serves every tenant';

CREATE TABLE tool_runner.receipts (
    organization_id uuid NOT NULL,
    call_key text NOT NULL,
    tool_id uuid NOT NULL,
    tool_version bigint NOT NULL,
    agent_id uuid,
    arguments_hash text NOT NULL,
    -- 1 reserved, 2 started, 3 done, 4 unknown; see services/tool_runner/core/model.py
    state smallint NOT NULL,
    outcome smallint NOT NULL DEFAULT 0,
    owner_id uuid NOT NULL,
    cancel_requested boolean NOT NULL DEFAULT false,
    limits jsonb NOT NULL DEFAULT '{}',
    sandbox text NOT NULL DEFAULT '',
    image text NOT NULL DEFAULT '',
    reserved_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    result text NOT NULL DEFAULT '',
    output_hash text NOT NULL DEFAULT '',
    tool_return text NOT NULL DEFAULT '',
    stdout text NOT NULL DEFAULT '',
    stderr text NOT NULL DEFAULT '',
    CONSTRAINT receipts_pkey PRIMARY KEY (organization_id, call_key)
) WITH (fillfactor = 70);
CREATE INDEX receipts_by_agent ON tool_runner.receipts (organization_id, agent_id);
"""


def upgrade() -> None:
    """Makes everything."""
    for statement in (_TOOLS + _RECEIPTS).split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Removes everything."""
    for table in ("receipts", "workers", "tools"):
        op.execute(f"DROP TABLE tool_runner.{table}")
