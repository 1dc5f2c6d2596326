"""Folders, their files, the text of these in pages of lines, and what agents have open."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_UP = """
CREATE TABLE memory.folders (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    description text,
    instructions text,
    metadata jsonb NOT NULL DEFAULT '{}',
    created_by_id uuid NOT NULL,
    last_updated_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT folders_pkey PRIMARY KEY (organization_id, id),
    CONSTRAINT folders_name_key UNIQUE (organization_id, name),
    -- Its passages, embedding model and counts are those of the archive with its id.
    CONSTRAINT folders_archive_fkey FOREIGN KEY (organization_id, id)
        REFERENCES memory.archives (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX folders_by_creation ON memory.folders (organization_id, created_at, id);

CREATE TABLE memory.files (
    organization_id uuid NOT NULL,
    id uuid NOT NULL,
    folder_id uuid NOT NULL,
    -- Without the folder's.
    name text NOT NULL,
    original_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    sha256 bytea NOT NULL,
    -- Where its bytes are, until they are parsed: whoever parses after a crash begins with them.
    upload_id uuid,
    -- How often its parsing was begun: whatever ends the process that parses shall not do so for ever.
    tries smallint NOT NULL DEFAULT 0,
    status smallint NOT NULL DEFAULT 1,
    error text,
    chunk_count integer NOT NULL DEFAULT 0,
    embedded_count integer NOT NULL DEFAULT 0,
    line_count integer NOT NULL DEFAULT 0,
    char_count bigint NOT NULL DEFAULT 0,
    created_by_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT files_pkey PRIMARY KEY (organization_id, id),
    -- No key of the folder's: that goes at once, and its files, which nobody finds any more, after it in portions.
    CONSTRAINT files_name_key UNIQUE (organization_id, folder_id, name)
) WITH (fillfactor = 80);
CREATE INDEX files_by_creation ON memory.files (organization_id, folder_id, created_at, id);

-- Bytes as they come in, each part a transaction of its own. An upload becomes a file, or is removed.
CREATE TABLE memory.file_uploads (
    organization_id uuid NOT NULL,
    upload_id uuid NOT NULL,
    part integer NOT NULL,
    data bytea NOT NULL,
    CONSTRAINT file_uploads_pkey PRIMARY KEY (organization_id, upload_id, part)
);
ALTER TABLE memory.file_uploads ALTER COLUMN data SET STORAGE EXTERNAL;

-- The text, in pages of whole lines, so that a view and a search read no more of it than they need.
CREATE TABLE memory.file_pages (
    organization_id uuid NOT NULL,
    file_id uuid NOT NULL,
    page integer NOT NULL,
    -- From 1.
    first_line integer NOT NULL,
    last_line integer NOT NULL,
    text text NOT NULL,
    -- The page ends in the middle of a line that is too long for one.
    continued boolean NOT NULL DEFAULT false,
    -- Where its pieces begin and end (pairs), and the place in the file of the first of them.
    first_place integer NOT NULL DEFAULT 0,
    cuts integer[] NOT NULL DEFAULT '{}',
    CONSTRAINT file_pages_pkey PRIMARY KEY (organization_id, file_id, page),
    CONSTRAINT file_pages_file_fkey FOREIGN KEY (organization_id, file_id)
        REFERENCES memory.files (organization_id, id) ON DELETE CASCADE
);

-- Of a passage that is a piece of a file: which, its place there, and the lines it covers.
ALTER TABLE memory.passages
    ADD COLUMN file_id uuid,
    ADD COLUMN place integer,
    ADD COLUMN first_line integer,
    ADD COLUMN last_line integer;
CREATE INDEX passages_by_file ON memory.passages (organization_id, archive_id, file_id, place)
    WHERE file_id IS NOT NULL;

CREATE TABLE memory.agent_folders (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    folder_id uuid NOT NULL,
    attached_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT agent_folders_pkey PRIMARY KEY (organization_id, agent_id, folder_id),
    CONSTRAINT agent_folders_folder_fkey FOREIGN KEY (organization_id, folder_id)
        REFERENCES memory.folders (organization_id, id) ON DELETE CASCADE
);
CREATE INDEX agent_folders_by_folder ON memory.agent_folders (organization_id, folder_id, attached_at);

-- Files that an agent has or had in view; a file never opened has no row.
CREATE TABLE memory.agent_files (
    organization_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    file_id uuid NOT NULL,
    is_open boolean NOT NULL,
    -- In view, from 1; and the most characters of them.
    first_line integer NOT NULL,
    last_line integer,
    char_limit integer NOT NULL,
    accessed_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT agent_files_pkey PRIMARY KEY (organization_id, agent_id, file_id),
    CONSTRAINT agent_files_file_fkey FOREIGN KEY (organization_id, file_id)
        REFERENCES memory.files (organization_id, id) ON DELETE CASCADE
) WITH (fillfactor = 80);
CREATE INDEX agent_files_by_file ON memory.agent_files (organization_id, file_id)
"""


def upgrade() -> None:
    """Makes the tables; passages get columns that are empty outside of files."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them, and the folders' archives with their passages."""
    op.execute("DROP TABLE memory.agent_files, memory.agent_folders, memory.file_pages, memory.file_uploads")
    op.execute("DROP TABLE memory.files, memory.folders")
    op.execute("DELETE FROM memory.archives WHERE kind = 2")
    op.execute("DROP INDEX memory.passages_by_file")
    op.execute(
        "ALTER TABLE memory.passages DROP COLUMN file_id, DROP COLUMN place, DROP COLUMN first_line,"
        " DROP COLUMN last_line"
    )
