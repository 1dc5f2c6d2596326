"""Rewinds and what they left behind, agents made out of others, and what finds a checkpoint without a search."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_CHANGES = """
-- A conversation was made to end at an earlier place.
CREATE TABLE agent.conversation_rewinds (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    id uuid NOT NULL,
    -- Where it went, and the newest checkpoint before (null: none): input (a message), step or run.
    to_kind text NOT NULL CHECK (to_kind IN ('input', 'step', 'run')),
    to_id uuid NOT NULL,
    left_kind text CHECK (left_kind IN ('input', 'step', 'run')),
    left_id uuid,
    -- What became of each block.
    blocks jsonb NOT NULL,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, conversation_id, id),
    FOREIGN KEY (organization_id, conversation_id)
        REFERENCES agent.conversations (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX rewinds_by_time ON agent.conversation_rewinds (organization_id, conversation_id, created_at, id);

-- What it showed before: kept, so that it can be had again.
CREATE TABLE agent.rewound_segments (
    organization_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    rewind_id uuid NOT NULL,
    ordinal integer NOT NULL,
    log_id uuid NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    PRIMARY KEY (organization_id, conversation_id, rewind_id, ordinal),
    FOREIGN KEY (organization_id, conversation_id, rewind_id)
        REFERENCES agent.conversation_rewinds (organization_id, conversation_id, id) ON DELETE CASCADE
);
CREATE INDEX rewound_segments_by_log ON agent.rewound_segments (organization_id, log_id);

-- What an agent was made from, and which of its blocks were copied then: their first versions are those of the place.
CREATE TABLE agent.agent_forks (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    source_agent_id uuid NOT NULL,
    message_id uuid NOT NULL,
    block_ids uuid[] NOT NULL,
    archive_ids uuid[] NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (organization_id, agent_id),
    FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
);

-- What was said before an agent was made out of another: its past as well, whatever becomes of the other.
CREATE TABLE agent.inherited_segments (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    ordinal integer NOT NULL,
    log_id uuid NOT NULL,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    PRIMARY KEY (organization_id, agent_id, ordinal),
    FOREIGN KEY (organization_id, agent_id) REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX inherited_segments_by_log ON agent.inherited_segments (organization_id, log_id);

CREATE VIEW agent.present_conversations AS
SELECT c.organization_id, c.id
FROM agent.conversations c
JOIN agent.agents a ON a.organization_id = c.organization_id AND a.id = c.agent_id AND a.deleted_at IS NULL
WHERE c.deleted_at IS NULL;

-- Messages that somebody shows, may show again, or has as a past.
CREATE VIEW agent.present_ranges AS
SELECT s.organization_id, s.log_id, s.from_seq, coalesce(s.to_seq, 9223372036854775807) AS to_seq
FROM agent.conversation_segments s
JOIN agent.present_conversations c ON c.organization_id = s.organization_id AND c.id = s.conversation_id
UNION ALL
SELECT s.organization_id, s.log_id, s.from_seq, s.to_seq
FROM agent.rewound_segments s
JOIN agent.present_conversations c ON c.organization_id = s.organization_id AND c.id = s.conversation_id
UNION ALL
SELECT s.organization_id, s.log_id, s.from_seq, s.to_seq
FROM agent.inherited_segments s
JOIN agent.agents a ON a.organization_id = s.organization_id AND a.id = s.agent_id AND a.deleted_at IS NULL;

CREATE INDEX messages_by_summary ON agent.messages (organization_id, log_id, seq) WHERE role = 'summary';
CREATE INDEX messages_by_step ON agent.messages (organization_id, step_id) WHERE role = 'tool'
"""


def upgrade() -> None:
    """Adds tables, views and indexes; no row changes."""
    for statement in _CHANGES.split(";\n"):
        op.execute(statement)
