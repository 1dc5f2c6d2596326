"""Tables of the whole loop: tool rules, approvals, compaction, conversations of their own, metrics of steps."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_CHANGES = """
ALTER TABLE agent.agents
    ADD COLUMN tool_rules jsonb NOT NULL DEFAULT '[]',
    -- What its client set of compaction; null: the defaults of its type.
    ADD COLUMN compaction_settings jsonb,
    ADD COLUMN message_buffer_autoclear boolean NOT NULL DEFAULT false,
    ADD COLUMN max_files_open integer,
    ADD COLUMN per_file_view_window_char_limit integer,
    -- Passages of its archives that each turn is shown for its message; none by default.
    ADD COLUMN recall_passages integer NOT NULL DEFAULT 0;

ALTER TABLE agent.conversations
    ADD COLUMN description text,
    -- Of this conversation alone; null: the agent's.
    ADD COLUMN model text,
    ADD COLUMN model_settings jsonb,
    ADD COLUMN context_window_limit integer,
    -- Labels of the blocks of which it has copies of its own.
    ADD COLUMN isolated_labels text[] NOT NULL DEFAULT '{}',
    ADD COLUMN hidden boolean NOT NULL DEFAULT false,
    ADD COLUMN archived_at timestamptz;

ALTER TABLE agent.conversation_heads
    -- The newest summary; it is shown first, whatever its place in the log.
    ADD COLUMN summary_id uuid,
    -- The message whose calls wait for the client, and when they are answered without one.
    ADD COLUMN pending_message_id uuid,
    ADD COLUMN approval_due timestamptz,
    ADD COLUMN last_message_at timestamptz,
    -- Tokens of the newest model call: as we had estimated them, and as its provider counted.
    ADD COLUMN estimated_tokens integer NOT NULL DEFAULT 0,
    ADD COLUMN reported_tokens integer NOT NULL DEFAULT 0;
CREATE INDEX heads_by_approval ON agent.conversation_heads (approval_due) WHERE approval_due IS NOT NULL;

-- What the request asked for, beside its messages; a run keeps it.
ALTER TABLE agent.runs
    ADD COLUMN options jsonb NOT NULL DEFAULT '{}';

ALTER TABLE agent.steps
    -- Nanoseconds by name: llm_request_ns, tool_execution_ns, step_ns.
    ADD COLUMN metrics jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN feedback text CHECK (feedback IN ('positive', 'negative')),
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
CREATE INDEX steps_by_creation ON agent.steps (organization_id, created_at, id);
CREATE INDEX steps_by_agent ON agent.steps (organization_id, agent_id, created_at);

ALTER TABLE agent.messages DROP CONSTRAINT messages_role_check;
ALTER TABLE agent.messages ADD CONSTRAINT messages_role_check
    CHECK (role IN ('system', 'user', 'assistant', 'tool', 'approval', 'summary'));

-- Requests to providers and their answers, of runs that asked for it.
CREATE TABLE agent.provider_traces (
    organization_id uuid NOT NULL,
    step_id uuid NOT NULL,
    run_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    trace text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, step_id),
    FOREIGN KEY (organization_id, run_id) REFERENCES agent.runs (organization_id, id) ON DELETE CASCADE
);

-- What a model's window turned out to be: the smallest that it refused to exceed.
CREATE TABLE agent.learned_windows (
    organization_id uuid NOT NULL,
    model text NOT NULL,
    tokens integer NOT NULL,
    learned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, model)
);
"""


def upgrade() -> None:
    """Adds columns and tables; no row changes."""
    for statement in _CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
