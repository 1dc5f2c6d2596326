"""Providers of tenants, what calls cost, and what tenants may spend."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_PROVIDERS = """
CREATE TABLE llm_gateway.providers (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    type text NOT NULL,
    base_url text NOT NULL,
    region text NOT NULL DEFAULT '',
    api_version text NOT NULL DEFAULT '',
    options jsonb NOT NULL DEFAULT '{}',
    -- JSON of key and access key, sealed (services/common/encryption.py); NULL: none.
    credentials bytea,
    version bigint NOT NULL DEFAULT 1,
    created_by uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- What its endpoint listed last, and when; the error of the last attempt, '' where it listed.
    models jsonb,
    synced_at timestamptz,
    sync_error text NOT NULL DEFAULT '',
    CONSTRAINT providers_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT providers_name_key UNIQUE (organization_id, name)
)
"""
_COSTS = """
ALTER TABLE llm_gateway.usage
    -- Billionths of a US dollar; NULL: the model had no price.
    ADD COLUMN cost_nanos_usd bigint
"""
_BY_AGENT = (
    "CREATE INDEX usage_by_agent ON llm_gateway.usage (organization_id, agent_id, created_at)"
    " WHERE agent_id IS NOT NULL"
)
# Kept by the statement that writes usage, so that no budget is summed over months of calls.
_HOURS = """
CREATE TABLE llm_gateway.usage_hours (
    organization_id uuid NOT NULL,
    hour timestamptz NOT NULL,
    requests bigint NOT NULL,
    tokens bigint NOT NULL,
    cost_nanos_usd bigint NOT NULL,
    CONSTRAINT usage_hours_pkey PRIMARY KEY (organization_id, hour)
)
"""
_BUDGETS = """
CREATE TABLE llm_gateway.budgets (
    organization_id uuid NOT NULL,
    period text NOT NULL CHECK (period IN ('minute', 'hour', 'day', 'month')),
    max_requests bigint CHECK (max_requests > 0),
    max_tokens bigint CHECK (max_tokens > 0),
    max_cost_nanos_usd bigint CHECK (max_cost_nanos_usd > 0),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT budgets_pkey PRIMARY KEY (organization_id, period),
    CONSTRAINT budgets_limit CHECK (num_nonnulls(max_requests, max_tokens, max_cost_nanos_usd) > 0)
)
"""


def upgrade() -> None:
    """To this revision."""
    for statement in (_PROVIDERS, _COSTS, _BY_AGENT, _HOURS, _BUDGETS):
        op.execute(statement)


def downgrade() -> None:
    """Back to the last one."""
    for table in ("budgets", "usage_hours", "providers"):
        op.execute(f"DROP TABLE llm_gateway.{table}")
    op.execute("DROP INDEX llm_gateway.usage_by_agent")
    op.execute("ALTER TABLE llm_gateway.usage DROP COLUMN cost_nanos_usd")
