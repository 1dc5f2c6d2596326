"""Callbacks of runs: what became of them, and the order for one, written with whatever ends its run."""

from alembic import op

revision = "0005"
down_revision = "0003"
branch_labels = None
depends_on = None

_COLUMNS = """
ALTER TABLE agent.runs
    -- When the callback was last tried, what it was answered with (null: nothing), and why it failed (null: it worked).
    ADD COLUMN callback_sent_at timestamptz,
    ADD COLUMN callback_status_code integer,
    ADD COLUMN callback_error text
"""

# A run ends in many places: by its worker, in the line, given up, with its agent. None of them can forget the order,
# and no run without a callback pays for it. The order holds all that is sent, so it outlives the run.
_ORDER = """
CREATE FUNCTION agent.order_callback() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload)
    VALUES (NEW.organization_id, gen_random_uuid(), 'callback', NEW.id, jsonb_build_object(
        'user_id', NEW.user_id,
        'url', NEW.options ->> 'callback_url',
        'agent_id', NEW.agent_id,
        'conversation_id', NEW.conversation_id,
        'status', NEW.status,
        'stop_reason', NEW.stop_reason,
        'completed_at', NEW.completed_at,
        'usage', NEW.usage,
        'error', NEW.error));
    RETURN NULL;
END
$$
"""
_TRIGGER = """
CREATE TRIGGER runs_order_callback AFTER UPDATE OF status ON agent.runs FOR EACH ROW
WHEN (OLD.status IN ('created', 'running') AND NEW.status NOT IN ('created', 'running')
      AND NEW.options ->> 'callback_url' IS NOT NULL)
EXECUTE FUNCTION agent.order_callback()
"""


def upgrade() -> None:
    """Adds columns, a function and a trigger; no row changes."""
    for statement in (_COLUMNS, _ORDER, _TRIGGER):
        op.execute(statement)
