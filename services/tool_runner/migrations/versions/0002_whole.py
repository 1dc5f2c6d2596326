"""Networks of tools, their search, environments, sandbox settings, files and output of calls, MCP servers.

Every key begins with organization_id; what must be found before the tenant is known is marked `reference`.
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TOOLS = """
ALTER TABLE tool_runner.tools
    -- JSON: what it may reach, which secrets go into its requests; '' for nothing. See egress/policy.py
    ADD COLUMN network text NOT NULL DEFAULT '',
    ADD COLUMN takes_agent_state boolean NOT NULL DEFAULT false,
    ADD COLUMN mcp_server_id uuid,
    -- As the MCP server calls it; `name` is made unique in the tenant.
    ADD COLUMN mcp_tool_name text NOT NULL DEFAULT '',
    -- The name in its words, getWeather and get_weather alike, and as it is.
    ADD COLUMN words tsvector GENERATED ALWAYS AS (
        setweight(to_tsvector('english'::regconfig, translate(name, '_-', '  ') || ' '
            || regexp_replace(translate(name, '_-', '  '), '([a-z0-9])([A-Z])', '\\1 \\2', 'g')), 'A')
        || setweight(to_tsvector('english'::regconfig, description), 'B')) STORED;
CREATE INDEX tools_by_words ON tool_runner.tools USING gin (words);
CREATE INDEX tools_by_mcp_server ON tool_runner.tools (organization_id, mcp_server_id) WHERE mcp_server_id IS NOT NULL;

-- What searches by meaning look at; made after the tool, `version` says of which one. A tool without is found by words.
CREATE TABLE tool_runner.tool_vectors (
    organization_id uuid NOT NULL,
    tool_id uuid NOT NULL,
    model text NOT NULL,
    version bigint NOT NULL,
    vector halfvec NOT NULL,
    CONSTRAINT tool_vectors_pkey PRIMARY KEY (organization_id, tool_id, model),
    CONSTRAINT tool_vectors_tool_fkey FOREIGN KEY (organization_id, tool_id)
        REFERENCES tool_runner.tools (organization_id, id) ON DELETE CASCADE
);
"""

_ENVIRONMENTS = """
CREATE TABLE tool_runner.sandbox_configs (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    type text NOT NULL,
    config text NOT NULL DEFAULT '{}',
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sandbox_configs_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT sandbox_configs_type_key UNIQUE (organization_id, type)
);

CREATE TABLE tool_runner.variables (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    -- 'sandbox', 'tool' or 'agent': whose id owner_id is
    scope text NOT NULL,
    owner_id uuid NOT NULL,
    key text NOT NULL,
    -- AES-GCM, bound to 'tool_runner.variables/<tenant>/<id>'
    value bytea NOT NULL,
    description text NOT NULL DEFAULT '',
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT variables_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT variables_key UNIQUE (organization_id, scope, owner_id, key)
);
"""

_CALLS = """
ALTER TABLE tool_runner.receipts
    ADD COLUMN tool_name text NOT NULL DEFAULT '',
    ADD COLUMN run_id uuid,
    ADD COLUMN step_id uuid,
    -- Fingerprint of the sandbox settings that held.
    ADD COLUMN settings text NOT NULL DEFAULT '',
    -- JSON array of [label, value]
    ADD COLUMN block_edits text NOT NULL DEFAULT '',
    -- How stdout and stderr were interleaved: JSON array of [stream, characters]; a stream replays from it.
    ADD COLUMN output_order text NOT NULL DEFAULT '';
CREATE INDEX receipts_by_time ON tool_runner.receipts (organization_id, reserved_at, call_key);
CREATE INDEX receipts_by_run ON tool_runner.receipts (organization_id, run_id) WHERE run_id IS NOT NULL;
-- For the sweep of old ones, over all tenants.
CREATE INDEX receipts_by_age ON tool_runner.receipts USING brin (reserved_at);

-- What a call that takes long has printed so far, for those who watch it from another replica; gone when it ends.
CREATE TABLE tool_runner.outputs (
    organization_id uuid NOT NULL,
    call_key text NOT NULL,
    sequence bigint NOT NULL,
    stream smallint NOT NULL,
    text text NOT NULL,
    CONSTRAINT outputs_pkey PRIMARY KEY (organization_id, call_key, sequence)
);

CREATE TABLE tool_runner.files (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    size bigint NOT NULL,
    sha256 text NOT NULL,
    content bytea NOT NULL,
    -- NULL for one that was uploaded
    call_key text,
    agent_id uuid,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT files_pkey PRIMARY KEY (organization_id, id)
);
-- Compressed files do not compress again.
ALTER TABLE tool_runner.files ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX files_by_call ON tool_runner.files (organization_id, call_key);
CREATE INDEX files_by_time ON tool_runner.files (organization_id, created_at, id);
CREATE INDEX files_by_agent ON tool_runner.files (organization_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX files_by_age ON tool_runner.files USING brin (created_at);
"""

_MCP = """
CREATE TABLE tool_runner.mcp_servers (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    -- 'streamable_http', 'sse' or 'stdio'
    type text NOT NULL,
    -- JSON: server_url, auth_header; or command, args, network. Nothing secret.
    config text NOT NULL,
    -- AES-GCM of JSON (auth_token, custom_headers, env), bound to 'tool_runner.mcp_servers/<tenant>/<id>/secrets'
    secrets bytea,
    -- AES-GCM of JSON (client registration, tokens), bound to '.../oauth'
    oauth bytea,
    -- Who renews its tokens has until then; nobody else does meanwhile.
    oauth_lease_until timestamptz,
    -- 0 never asked, 1 connected, 2 wants OAuth, 3 failed; as McpStatus
    status smallint NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT '',
    -- JSON array of [name, problem]
    tool_problems text NOT NULL DEFAULT '[]',
    metadata text NOT NULL DEFAULT '{}',
    synced_at timestamptz,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    CONSTRAINT mcp_servers_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT mcp_servers_name_key UNIQUE (organization_id, name)
);

-- Authorisations that are under way. The browser that comes back names nothing but the state.
CREATE TABLE tool_runner.mcp_authorizations (
    -- SHA-256 of the state: a dump of the table answers no callback
    state_hash bytea PRIMARY KEY,
    organization_id uuid NOT NULL,
    user_id uuid NOT NULL,
    -- NULL for a server that is only tried
    mcp_server_id uuid,
    -- AES-GCM of JSON (verifier, client registration, endpoints, redirect), bound to the state's hash
    attempt bytea NOT NULL,
    -- 0 waiting, 1 given, 2 refused, 3 being finished
    outcome smallint NOT NULL DEFAULT 0,
    problem text NOT NULL DEFAULT '',
    -- AES-GCM of JSON (tokens), bound as `attempt`; for who waits for a server that is only tried
    tokens bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE tool_runner.mcp_authorizations IS 'reference: a callback comes before its tenant is known';
"""


def upgrade() -> None:
    """Makes everything."""
    for statement in (_TOOLS + _ENVIRONMENTS + _CALLS + _MCP).split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Removes everything."""
    tables = ("mcp_authorizations", "mcp_servers", "files", "outputs", "variables", "sandbox_configs", "tool_vectors")
    for table in tables:
        op.execute(f"DROP TABLE tool_runner.{table}")
    columns = {
        "receipts": ("output_order", "block_edits", "settings", "step_id", "run_id", "tool_name"),
        "tools": ("words", "mcp_tool_name", "mcp_server_id", "takes_agent_state", "network"),
    }
    for name, dropped in columns.items():
        op.execute(f"ALTER TABLE tool_runner.{name} " + ", ".join(f"DROP COLUMN {column}" for column in dropped))
