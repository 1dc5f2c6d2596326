"""Changes of an archive's embedding model, made in the background."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_UP = """
CREATE TABLE memory.embedding_changes (
    organization_id uuid NOT NULL,
    archive_id uuid NOT NULL,
    -- UUID version 7: the newest change of an archive has the greatest.
    id uuid NOT NULL,
    -- Null: no vectors.
    from_embedding text,
    from_model_id integer,
    to_embedding text,
    -- Null until the first vector has come.
    to_model_id integer,
    state smallint NOT NULL DEFAULT 1,
    -- A rollback that still waits for vectors of the model before: its roles are exchanged.
    rolling_back boolean NOT NULL DEFAULT false,
    error text,
    -- Where to look for passages without a vector: before it there were none. Null: from the start.
    reached_at timestamptz,
    reached_id uuid,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    completed_at timestamptz,
    CONSTRAINT embedding_changes_pkey PRIMARY KEY (organization_id, archive_id, id),
    CONSTRAINT embedding_changes_archive_fkey FOREIGN KEY (organization_id, archive_id)
        REFERENCES memory.archives (organization_id, id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX embedding_changes_one_runs ON memory.embedding_changes (organization_id, archive_id)
    WHERE state = 1;
-- Passages whose text, of this hash, a model has no vector for: its vector is zero, or the model refuses the text.
CREATE TABLE memory.embedding_blanks (
    organization_id uuid NOT NULL,
    archive_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model_id integer NOT NULL,
    text_hash text NOT NULL,
    CONSTRAINT embedding_blanks_pkey PRIMARY KEY (organization_id, archive_id, passage_id, model_id),
    CONSTRAINT embedding_blanks_passage_fkey FOREIGN KEY (organization_id, archive_id, passage_id)
        REFERENCES memory.passages (organization_id, archive_id, id) ON DELETE CASCADE
)
"""


def upgrade() -> None:
    """Makes the tables."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them; vectors of other models stay where they are."""
    op.execute("DROP TABLE memory.embedding_blanks")
    op.execute("DROP TABLE memory.embedding_changes")
