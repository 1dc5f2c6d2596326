"""Agents, conversations and their logs, runs as logs of facts, workers and queues.

Every key begins with organization_id (docs/decisions/0003). Tables that are read before the tenant is known say so in
their comment, which begins with "reference:".
"""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = """
CREATE TABLE agent.organizations (
    organization_id uuid PRIMARY KEY,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);

CREATE TABLE agent.users (
    organization_id uuid NOT NULL REFERENCES agent.organizations (organization_id),
    id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (organization_id, id)
);

CREATE TABLE agent.agents (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    name text NOT NULL,
    description text,
    agent_type text NOT NULL,
    system text NOT NULL,
    model text NOT NULL,
    embedding text NOT NULL,
    model_settings jsonb NOT NULL DEFAULT '{}',
    response_format jsonb,
    context_window_limit integer NOT NULL,
    tool_ids uuid[] NOT NULL DEFAULT '{}',
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    timezone text NOT NULL DEFAULT 'UTC',
    hidden boolean NOT NULL DEFAULT false,
    project_id text,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX agents_by_creation ON agent.agents (organization_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX agents_by_tag ON agent.agents USING gin (tags) WHERE deleted_at IS NULL;

-- An agent's default conversation has the agent's own id.
CREATE TABLE agent.conversations (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    summary text,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    PRIMARY KEY (organization_id, id),
    FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX conversations_by_agent ON agent.conversations (organization_id, agent_id, created_at);

-- The narrow row that a turn writes: who has the turn, where the log goes on, where the window begins, which prompt
-- is current.
CREATE TABLE agent.conversation_heads (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    log_id uuid NOT NULL,
    next_seq bigint NOT NULL DEFAULT 1,
    active_run_id uuid,
    waiting integer NOT NULL DEFAULT 0,
    window_ordinal integer NOT NULL DEFAULT 0,
    window_seq bigint NOT NULL DEFAULT 1,
    prompt_hash bytea,
    prompt_versions jsonb,
    PRIMARY KEY (organization_id, conversation_id),
    FOREIGN KEY (organization_id, conversation_id)
        REFERENCES agent.conversations (organization_id, id) ON DELETE CASCADE
) WITH (fillfactor = 70);

-- A conversation is a short list of ranges of logs; the last one is open (to_seq is null). A fork adds ranges, it
-- copies no message.
CREATE TABLE agent.conversation_segments (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    ordinal integer NOT NULL,
    log_id uuid NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint,
    PRIMARY KEY (organization_id, conversation_id, ordinal),
    FOREIGN KEY (organization_id, conversation_id)
        REFERENCES agent.conversations (organization_id, id) ON DELETE CASCADE
);

-- A replica's lease, beaten every half second.
CREATE TABLE agent.workers (
    id uuid PRIMARY KEY,
    started_at timestamptz NOT NULL DEFAULT now(),
    beat_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
COMMENT ON TABLE agent.workers IS 'reference: a replica serves every tenant';

CREATE TABLE agent.runs (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    user_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('created', 'running', 'completed', 'failed', 'cancelled')),
    stop_reason text,
    background boolean NOT NULL DEFAULT false,
    -- Who drives it, and who accepted it and has its first reader.
    worker_id uuid,
    home_id uuid NOT NULL,
    -- Raised by each claim; every fact is refused under an old one.
    fence integer NOT NULL DEFAULT 0,
    -- Facts stored so far.
    facts integer NOT NULL DEFAULT 0,
    cancel_requested boolean NOT NULL DEFAULT false,
    deadline timestamptz NOT NULL,
    -- Runs that wait for this one, outermost first.
    ancestors uuid[] NOT NULL DEFAULT '{}',
    request_hash bytea,
    usage jsonb NOT NULL DEFAULT '{}',
    error jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    first_token_at timestamptz,
    completed_at timestamptz,
    PRIMARY KEY (organization_id, id),
    FOREIGN KEY (organization_id, conversation_id)
        REFERENCES agent.conversations (organization_id, id) ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX runs_by_agent ON agent.runs (organization_id, agent_id, created_at);
CREATE INDEX runs_by_conversation ON agent.runs (organization_id, conversation_id, created_at);
CREATE INDEX runs_by_creation ON agent.runs (organization_id, created_at, id);
CREATE INDEX runs_by_request ON agent.runs (organization_id, request_hash, created_at) WHERE request_hash IS NOT NULL;
CREATE INDEX runs_by_worker ON agent.runs (worker_id) WHERE status = 'running';

-- Otids and idempotency keys by which a repeated request finds its run.
CREATE TABLE agent.run_keys (
    organization_id uuid NOT NULL,
    key text NOT NULL,
    run_id uuid NOT NULL,
    PRIMARY KEY (organization_id, key),
    FOREIGN KEY (organization_id, run_id) REFERENCES agent.runs (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX run_keys_by_run ON agent.run_keys (organization_id, run_id);

-- The log of a run. `sequence` is that of its first frame in the run's stream.
CREATE TABLE agent.facts (
    organization_id uuid NOT NULL,
    run_id uuid NOT NULL,
    number integer NOT NULL,
    kind text NOT NULL,
    schema_version smallint NOT NULL,
    fence integer NOT NULL,
    sequence bigint NOT NULL,
    body jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, run_id, number),
    FOREIGN KEY (organization_id, run_id) REFERENCES agent.runs (organization_id, id) ON DELETE CASCADE
);

CREATE TABLE agent.steps (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    run_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    number integer NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'success', 'failed', 'cancelled')),
    stop_reason text,
    model_handle text NOT NULL,
    attempts integer NOT NULL,
    context_window_limit integer NOT NULL,
    usage jsonb NOT NULL DEFAULT '{}',
    error jsonb,
    -- The compiled prompt it was made with, and the versions of the blocks it saw.
    prompt_hash bytea,
    block_versions jsonb NOT NULL DEFAULT '{}',
    trace_id text,
    created_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    PRIMARY KEY (organization_id, id),
    UNIQUE (organization_id, run_id, number),
    FOREIGN KEY (organization_id, run_id) REFERENCES agent.runs (organization_id, id) ON DELETE CASCADE
);

CREATE TABLE agent.messages (
    organization_id uuid NOT NULL,
    log_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    run_id uuid,
    step_id uuid,
    -- The fact that it is part of, and its place in that fact.
    fact integer,
    role text NOT NULL CHECK (role IN ('system', 'user', 'assistant', 'tool')),
    content jsonb NOT NULL,
    name text,
    otid text,
    sender_id text,
    search tsvector,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, log_id, seq),
    UNIQUE (organization_id, id)
);
CREATE INDEX messages_by_run ON agent.messages (organization_id, run_id, seq);
CREATE INDEX messages_by_agent ON agent.messages (organization_id, agent_id, created_at);
CREATE INDEX messages_by_text ON agent.messages USING gin (search);

CREATE TABLE agent.compiled_prompts (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    hash bytea NOT NULL,
    text text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, agent_id, hash)
);

-- Requests that wait for their turn; the row holds the input until it is put into the log.
CREATE TABLE agent.conversation_line (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    run_id uuid NOT NULL,
    front boolean NOT NULL DEFAULT false,
    schema_version smallint NOT NULL,
    input jsonb NOT NULL,
    entered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, conversation_id, run_id),
    FOREIGN KEY (organization_id, run_id) REFERENCES agent.runs (organization_id, id) ON DELETE CASCADE
);

-- Runs that any replica may take, chosen in two steps: a ready tenant, then its oldest rows; deleted when claimed.
CREATE TABLE agent.ready_tenants (
    organization_id uuid PRIMARY KEY,
    served_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE agent.run_queue (
    organization_id uuid NOT NULL,
    run_id uuid NOT NULL,
    entered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (organization_id, run_id)
);

-- Work for other services that must happen at least once.
CREATE TABLE agent.outbox (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL,
    subject_id uuid NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    not_before timestamptz NOT NULL DEFAULT now(),
    attempts integer NOT NULL DEFAULT 0,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, id)
);
CREATE INDEX outbox_by_time ON agent.outbox (not_before);

INSERT INTO agent.organizations (organization_id, name)
VALUES ('00000000-0000-4000-8000-000000000000', 'default_org');
INSERT INTO agent.users (organization_id, id, name)
VALUES ('00000000-0000-4000-8000-000000000000', '00000000-0000-4000-8000-000000000000', 'default_user');
"""


def upgrade() -> None:
    """Makes the schema's first tables."""
    for statement in _TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement)
