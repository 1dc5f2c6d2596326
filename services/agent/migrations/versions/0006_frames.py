"""Stored streams: what background runs show and no fact holds. See docs/decisions/0021."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# run_hour is the hour (UTC) in which the run was accepted, so that a whole stream lies in one partition and is dropped
# with it. Replicas make and drop the partitions. There is no key to the run: each row would lock it.
_FRAMES = """
CREATE TABLE agent.run_frames (
    organization_id uuid NOT NULL,
    run_hour timestamptz NOT NULL,
    run_id uuid NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    schema_version smallint NOT NULL,
    -- As the model gave them, NUL characters too, which jsonb would refuse.
    frames json NOT NULL,
    PRIMARY KEY (organization_id, run_hour, run_id, first_sequence)
) PARTITION BY RANGE (run_hour)
"""

# Erasing a run erases its stream, whoever does it.
_ERASE = """
CREATE FUNCTION agent.erase_frames() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM agent.run_frames
    WHERE organization_id = OLD.organization_id AND run_hour = date_trunc('hour', OLD.created_at, 'UTC')
        AND run_id = OLD.id;
    RETURN NULL;
END
$$
"""
_TRIGGER = """
CREATE TRIGGER runs_erase_frames AFTER DELETE ON agent.runs FOR EACH ROW EXECUTE FUNCTION agent.erase_frames()
"""


def upgrade() -> None:
    """Adds a table without partitions, a function and a trigger; no row changes."""
    for statement in (_FRAMES, _ERASE, _TRIGGER):
        op.execute(statement)
