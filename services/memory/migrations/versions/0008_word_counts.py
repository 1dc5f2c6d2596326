"""In how many passages of a large archive a common word stands, estimated from a sample."""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_UP = """
CREATE TABLE memory.word_samples (
    organization_id uuid NOT NULL,
    -- An archive, or the whole tenant.
    scope_id uuid NOT NULL,
    -- Passages of the scope when the sample was taken, and how many of them were in it.
    passages bigint NOT NULL,
    sampled bigint NOT NULL,
    taken_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT word_samples_pkey PRIMARY KEY (organization_id, scope_id)
);
-- Words that are not here are rare.
CREATE TABLE memory.word_counts (
    organization_id uuid NOT NULL,
    scope_id uuid NOT NULL,
    lexeme text COLLATE "C" NOT NULL,
    -- Share of the sampled passages that have it.
    share real NOT NULL,
    CONSTRAINT word_counts_pkey PRIMARY KEY (organization_id, scope_id, lexeme),
    CONSTRAINT word_counts_sample_fkey FOREIGN KEY (organization_id, scope_id)
        REFERENCES memory.word_samples (organization_id, scope_id) ON DELETE CASCADE
);
-- Entries that wait are put in together, which takes a third less than one by one; half a megabyte of them is read
-- through by every search, which takes less than can be measured.
ALTER INDEX memory.passages_by_words SET (fastupdate = on, gin_pending_list_limit = 512)
"""


def upgrade() -> None:
    """Makes the tables, and lets entries of the index wait for one another."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    op.execute("ALTER INDEX memory.passages_by_words RESET (gin_pending_list_limit)")
    op.execute("ALTER INDEX memory.passages_by_words SET (fastupdate = off)")
    op.execute("DROP TABLE memory.word_counts, memory.word_samples")
