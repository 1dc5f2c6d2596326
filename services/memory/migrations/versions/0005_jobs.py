"""Work in the background, and archives whose embedding model is known by name before it has made a vector."""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_UP = """
-- Claimed before the tenant is known, so it has no key by tenant. A job's progress is in the rows that it works on.
CREATE TABLE memory.jobs (
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    kind text NOT NULL,
    -- What it works on, in the words of its kind.
    subject text NOT NULL,
    not_before timestamptz NOT NULL DEFAULT now(),
    -- Tries that failed since it moved last.
    failures integer NOT NULL DEFAULT 0,
    worker_id uuid,
    leased_until timestamptz,
    -- Asked for again while it was running: it runs once more.
    again boolean NOT NULL DEFAULT false,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_one_per_subject UNIQUE (organization_id, kind, subject)
) WITH (fillfactor = 70);
CREATE INDEX jobs_by_time ON memory.jobs (not_before);
COMMENT ON TABLE memory.jobs IS 'reference: work is claimed before its tenant is known; small, and empty when idle';
-- What was asked for at creation. model_id, which knows the length of the vectors, follows with the first of them.
-- A kind of 1 is an archive, one of 2 holds the passages of the folder with the same id, one of 3 is being erased.
ALTER TABLE memory.archives ADD COLUMN embedding text, ADD COLUMN kind smallint NOT NULL DEFAULT 1;
UPDATE memory.archives a SET embedding = e.handle FROM memory.embedding_models e WHERE e.id = a.model_id;
CREATE INDEX archives_by_name ON memory.archives (organization_id, name);
-- Whether it was made for this agent alone, and goes with it. Until now, every default archive was.
ALTER TABLE memory.agent_archives ADD COLUMN created_with_agent boolean NOT NULL DEFAULT false;
UPDATE memory.agent_archives SET created_with_agent = is_default;
-- For the API, which names passages without their archives.
CREATE INDEX passages_by_id ON memory.passages (organization_id, id);
-- One lexeme for all of a tenant's passages in archives, as there is one for each archive.
UPDATE memory.passages
    SET words = words || array_to_tsvector(ARRAY['@@' || replace(organization_id::text, '-', '')])
"""


def upgrade() -> None:
    """Makes the queue and adds columns; the tenant's lexeme is added to every passage."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    op.execute("UPDATE memory.passages SET words = ts_delete(words, '@@' || replace(organization_id::text, '-', ''))")
    op.execute("DROP INDEX memory.passages_by_id")
    op.execute("ALTER TABLE memory.agent_archives DROP COLUMN created_with_agent")
    op.execute("DROP INDEX memory.archives_by_name")
    op.execute("ALTER TABLE memory.archives DROP COLUMN embedding, DROP COLUMN kind")
    op.execute("DROP TABLE memory.jobs")
