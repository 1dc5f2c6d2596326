"""Blocks with their history, archives of passages with tags and vectors, and the results of tool calls.

Every key begins with organization_id. `services/memory/*/tables.py` say the same to SQLAlchemy; a
test compares the two.
"""

from alembic import op
from sqlalchemy.exc import DBAPIError

from services.common.settings import SettingsError

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# English stems help most texts and harm no other language, whose words come out as they went in or with an
# ending less, in texts and queries alike. No word is dropped: document frequencies make common words count
# little.
_WORDS = """
CREATE TEXT SEARCH DICTIONARY memory.stems (TEMPLATE = pg_catalog.snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION memory.words (COPY = pg_catalog.english);
ALTER TEXT SEARCH CONFIGURATION memory.words ALTER MAPPING REPLACE pg_catalog.english_stem WITH memory.stems;
"""

_BLOCKS = """
CREATE TABLE memory.blocks (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    label text NOT NULL,
    value text NOT NULL,
    char_limit bigint NOT NULL,
    description text,
    read_only boolean NOT NULL DEFAULT false,
    hidden boolean NOT NULL DEFAULT false,
    metadata jsonb NOT NULL DEFAULT '{}',
    tags text[] NOT NULL DEFAULT '{}',
    project_id text,
    template_name text,
    is_template boolean NOT NULL DEFAULT false,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    CONSTRAINT blocks_pkey PRIMARY KEY (organization_id, id),
    -- What attachments refer to, so that a label is never another there than here.
    CONSTRAINT blocks_label_key UNIQUE (organization_id, id, label),
    CONSTRAINT blocks_within_limit CHECK (char_length(value) <= char_limit)
) WITH (fillfactor = 80);
CREATE INDEX blocks_by_creation ON memory.blocks (organization_id, created_at, id);

-- One row per version, as the block was after the change.
CREATE TABLE memory.block_history (
    organization_id uuid NOT NULL,
    block_id uuid NOT NULL,
    version bigint NOT NULL,
    label text NOT NULL,
    value text NOT NULL,
    char_limit bigint NOT NULL,
    description text,
    metadata jsonb NOT NULL,
    operation smallint NOT NULL,
    actor_id uuid NOT NULL,
    agent_id uuid,
    run_id uuid,
    step_id uuid,
    call_key text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT block_history_pkey PRIMARY KEY (organization_id, block_id, version),
    CONSTRAINT block_history_block_fkey FOREIGN KEY (organization_id, block_id)
        REFERENCES memory.blocks (organization_id, id) ON DELETE CASCADE
);

CREATE TABLE memory.agent_blocks (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    block_id uuid NOT NULL,
    label text NOT NULL,
    position bigint NOT NULL,
    -- Made for this agent: goes with it when the agent never came to be.
    created_with_agent boolean NOT NULL DEFAULT false,
    attached_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT agent_blocks_pkey PRIMARY KEY (organization_id, agent_id, block_id),
    CONSTRAINT agent_blocks_label_key UNIQUE (organization_id, agent_id, label),
    CONSTRAINT agent_blocks_block_fkey FOREIGN KEY (organization_id, block_id, label)
        REFERENCES memory.blocks (organization_id, id, label) ON DELETE CASCADE ON UPDATE CASCADE
);
CREATE INDEX agent_blocks_by_block ON memory.agent_blocks (organization_id, block_id, attached_at);
"""

_PASSAGES = """
CREATE TABLE memory.embedding_models (
    id integer GENERATED ALWAYS AS IDENTITY,
    handle text NOT NULL,
    dimensions integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT embedding_models_pkey PRIMARY KEY (id),
    CONSTRAINT embedding_models_handle_key UNIQUE (handle, dimensions)
);
COMMENT ON TABLE memory.embedding_models IS
    'reference: one vector index per model serves all tenants, its id is a literal in their SQL';

CREATE TABLE memory.archives (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    description text,
    -- The model it began with; null: found by words alone.
    model_id integer,
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Of its passages, for ranking and for the prompt; kept by the statements that add and remove passages.
    passage_count bigint NOT NULL DEFAULT 0,
    word_count bigint NOT NULL DEFAULT 0,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT archives_pkey PRIMARY KEY (organization_id, id)
) WITH (fillfactor = 70);
CREATE INDEX archives_by_creation ON memory.archives (organization_id, created_at, id);

CREATE TABLE memory.agent_archives (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    archive_id uuid NOT NULL,
    is_default boolean NOT NULL DEFAULT false,
    attached_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT agent_archives_pkey PRIMARY KEY (organization_id, agent_id, archive_id),
    CONSTRAINT agent_archives_archive_fkey FOREIGN KEY (organization_id, archive_id)
        REFERENCES memory.archives (organization_id, id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX agent_archives_one_default ON memory.agent_archives (organization_id, agent_id)
    WHERE is_default;
CREATE INDEX agent_archives_by_archive ON memory.agent_archives (organization_id, archive_id);

CREATE TABLE memory.passages (
    organization_id uuid NOT NULL,
    archive_id uuid NOT NULL,
    id uuid NOT NULL,
    text text NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    -- Stems with positions, and the archive's own lexeme (services/memory/core/ranking/search.py).
    words tsvector NOT NULL,
    word_count integer NOT NULL,
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT passages_pkey PRIMARY KEY (organization_id, archive_id, id),
    CONSTRAINT passages_archive_fkey FOREIGN KEY (organization_id, archive_id)
        REFERENCES memory.archives (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX passages_by_creation ON memory.passages (organization_id, archive_id, created_at, id);
-- Without a list of pending entries, which every search would read through.
CREATE INDEX passages_by_words ON memory.passages USING gin (words) WITH (fastupdate = off);

-- The tags once more, for filters and for the list of tags.
CREATE TABLE memory.passage_tags (
    organization_id uuid NOT NULL,
    archive_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    tag text COLLATE "C" NOT NULL,
    CONSTRAINT passage_tags_pkey PRIMARY KEY (organization_id, archive_id, passage_id, tag),
    CONSTRAINT passage_tags_passage_fkey FOREIGN KEY (organization_id, archive_id, passage_id)
        REFERENCES memory.passages (organization_id, archive_id, id) ON DELETE CASCADE
);
CREATE INDEX passage_tags_by_tag ON memory.passage_tags (organization_id, archive_id, tag, passage_id);

-- Apart from the text, so that a scan over the vectors of an archive reads nothing else.
CREATE TABLE memory.passage_vectors (
    organization_id uuid NOT NULL,
    archive_id uuid NOT NULL,
    passage_id uuid NOT NULL,
    model_id integer NOT NULL,
    embedding halfvec NOT NULL,
    CONSTRAINT passage_vectors_pkey PRIMARY KEY (organization_id, archive_id, passage_id, model_id),
    CONSTRAINT passage_vectors_passage_fkey FOREIGN KEY (organization_id, archive_id, passage_id)
        REFERENCES memory.passages (organization_id, archive_id, id) ON DELETE CASCADE
);
-- Up to 4,000 dimensions a vector stays in its row; moved out, an exact scan takes more than twice the time.
ALTER TABLE memory.passage_vectors SET (toast_tuple_target = 8160);
"""

_CALLS = """
CREATE TABLE memory.applied_calls (
    organization_id uuid NOT NULL,
    call_key text NOT NULL,
    agent_id uuid NOT NULL,
    tool_name text NOT NULL,
    arguments_hash bytea NOT NULL,
    tool_return text NOT NULL,
    is_error boolean NOT NULL,
    changed_block_ids uuid[] NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT applied_calls_pkey PRIMARY KEY (organization_id, call_key)
);
CREATE INDEX applied_calls_by_agent ON memory.applied_calls (organization_id, agent_id);
CREATE INDEX applied_calls_by_time ON memory.applied_calls (created_at);
"""


def upgrade() -> None:
    """Makes everything."""
    try:
        op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except DBAPIError as error:
        raise SettingsError(
            "LOCI_MEMORY_DATABASE_URL or LOCI_DATABASE_URL names a database without the extension pgvector; "
            f"install it and run as its owner: CREATE EXTENSION vector ({' '.join(str(error.orig).split())})"
        ) from None
    for statement in (_WORDS + _BLOCKS + _PASSAGES + _CALLS).split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Removes everything but the extension."""
    for table in (
        "applied_calls",
        "passage_vectors",
        "passage_tags",
        "passages",
        "agent_archives",
        "archives",
        "embedding_models",
        "agent_blocks",
        "block_history",
        "blocks",
    ):
        op.execute(f"DROP TABLE memory.{table}")
    op.execute("DROP TEXT SEARCH CONFIGURATION memory.words")
    op.execute("DROP TEXT SEARCH DICTIONARY memory.stems")
