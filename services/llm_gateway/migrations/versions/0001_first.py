"""Usage: the cost of calls to providers, one row each."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_USAGE = """
CREATE TABLE llm_gateway.usage (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('chat', 'embedding')),
    handle text NOT NULL,
    run_id uuid,
    step_id uuid,
    agent_id uuid,
    -- Input tokens, the cached ones included; output tokens, reasoning included.
    prompt_tokens bigint NOT NULL,
    completion_tokens bigint NOT NULL,
    -- NULL: the provider does not report it.
    cached_input_tokens bigint,
    cache_write_tokens bigint,
    reasoning_tokens bigint,
    -- The provider gave no figures, so these are ours.
    estimated boolean NOT NULL,
    provider_model text NOT NULL,
    milliseconds integer NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT usage_pkey PRIMARY KEY (organization_id, id)
)
"""
_BY_TIME = "CREATE INDEX usage_by_time ON llm_gateway.usage (organization_id, created_at)"
_BY_RUN = "CREATE INDEX usage_by_run ON llm_gateway.usage (organization_id, run_id) WHERE run_id IS NOT NULL"


def upgrade() -> None:
    """To this revision."""
    for statement in (_USAGE, _BY_TIME, _BY_RUN):
        op.execute(statement)


def downgrade() -> None:
    """Back to an empty schema."""
    op.execute("DROP TABLE llm_gateway.usage")
