"""Messages found by their meaning, and by their words within one agent's past or one tenant's."""

from alembic import op
from sqlalchemy.exc import DBAPIError

from services.common.settings import SettingsError

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_UP = """
CREATE TABLE agent.embedding_models (
    id integer GENERATED ALWAYS AS IDENTITY,
    handle text NOT NULL,
    dimensions integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT embedding_models_pkey PRIMARY KEY (id),
    CONSTRAINT embedding_models_handle_key UNIQUE (handle, dimensions)
);
COMMENT ON TABLE agent.embedding_models IS
    'reference: one vector index per model serves all tenants, its id is a literal in their SQL';

-- Filled in the background, never by a turn. What a search leaves out by is here once more, so that it reads nothing
-- else; of a message nothing of it ever changes.
CREATE TABLE agent.message_vectors (
    organization_id uuid NOT NULL,
    message_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    log_id uuid NOT NULL,
    seq bigint NOT NULL,
    role text NOT NULL,
    created_at timestamptz NOT NULL,
    model_id integer NOT NULL,
    embedding halfvec NOT NULL,
    -- Not yet in the model's index: read beside it (services/common/vector_indexes.py).
    waiting boolean NOT NULL DEFAULT true,
    CONSTRAINT message_vectors_pkey PRIMARY KEY (organization_id, message_id),
    CONSTRAINT message_vectors_message_fkey FOREIGN KEY (organization_id, message_id)
        REFERENCES agent.messages (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX message_vectors_by_agent
    ON agent.message_vectors (organization_id, model_id, agent_id, created_at);
CREATE INDEX message_vectors_waiting
    ON agent.message_vectors (model_id, organization_id, agent_id) WHERE waiting;
CREATE INDEX message_vectors_by_place ON agent.message_vectors (organization_id, log_id, seq);
-- Up to 4,000 dimensions a vector stays in its row; moved out, an exact scan takes more than twice the time.
ALTER TABLE agent.message_vectors SET (toast_tuple_target = 8160);

-- How far each log has been read for vectors. The head of a conversation is locked while its log grows, so places in
-- a log are taken in the order in which they are committed: what is behind the mark stays behind it.
CREATE TABLE agent.vector_marks (
    organization_id uuid NOT NULL,
    log_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    -- The model that the vectors up to the mark are of.
    embedding text NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    -- Nobody takes it before: somebody works on it, or it failed.
    not_before timestamptz NOT NULL DEFAULT now(),
    -- Raised by whoever takes it; what an earlier taker brings is refused.
    taken bigint NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    CONSTRAINT vector_marks_pkey PRIMARY KEY (organization_id, log_id),
    CONSTRAINT vector_marks_agent_fkey FOREIGN KEY (organization_id, agent_id)
        REFERENCES agent.agents (organization_id, id) ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX vector_marks_by_agent ON agent.vector_marks (organization_id, agent_id);

-- One row: where the search for logs that lack vectors goes on, and when. Replicas take turns.
CREATE TABLE agent.vector_sweep (
    organization_id uuid NOT NULL,
    log_id uuid NOT NULL,
    next_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE agent.vector_sweep IS 'reference: one row, a place in the logs of all tenants';
INSERT INTO agent.vector_sweep (organization_id, log_id)
VALUES ('00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000');

-- An index over the words alone walks all tenants' messages for a common one. Asked for together with a lexeme of the
-- agent, or of the tenant, it walks theirs; no word has an "@" in front. It is made out of columns that are there: no
-- row changes, and no statement of a turn.
CREATE INDEX messages_by_words ON agent.messages USING gin ((
    search || array_to_tsvector(ARRAY[
        '@' || replace(agent_id::text, '-', ''), '@@' || replace(organization_id::text, '-', '')])
)) WITH (gin_pending_list_limit = 1024);
DROP INDEX agent.messages_by_text
"""


def upgrade() -> None:
    """Makes tables, and another index over words; vectors of what was said before are made in the background."""
    try:
        op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except DBAPIError as error:
        raise SettingsError(
            "LOCI_AGENT_DATABASE_URL or LOCI_DATABASE_URL names a database without the extension pgvector; "
            f"install it and run as its owner: CREATE EXTENSION vector ({' '.join(str(error.orig).split())})"
        ) from None
    for statement in _UP.split(";\n"):
        if statement.strip():
            op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    op.execute("CREATE INDEX messages_by_text ON agent.messages USING gin (search)")
    op.execute("DROP INDEX agent.messages_by_words")
    op.execute("DROP TABLE agent.message_vectors, agent.vector_marks, agent.vector_sweep, agent.embedding_models")
