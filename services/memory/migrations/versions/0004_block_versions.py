"""What block history needs for undo and for values as of a time, fields that are only echoed, and a look-up by tag."""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_UP = """
ALTER TABLE memory.blocks
    ADD COLUMN template_id text,
    ADD COLUMN base_template_id text,
    ADD COLUMN deployment_id text,
    ADD COLUMN entity_id text,
    ADD COLUMN preserve_on_migration boolean NOT NULL DEFAULT false;
CREATE INDEX blocks_by_tag ON memory.blocks USING gin (tags);
-- Of a version that brought an earlier value back: which, and of an undo the version that a redo goes to.
ALTER TABLE memory.block_history ADD COLUMN restored_version bigint, ADD COLUMN redo_version bigint;
CREATE INDEX block_history_by_time ON memory.block_history (organization_id, block_id, created_at, version)
"""


def upgrade() -> None:
    """Adds columns and indexes; no row changes."""
    for statement in _UP.split(";\n"):
        op.execute(statement)


def downgrade() -> None:
    """Removes them."""
    op.execute("DROP INDEX memory.block_history_by_time")
    op.execute("ALTER TABLE memory.block_history DROP COLUMN restored_version, DROP COLUMN redo_version")
    op.execute("DROP INDEX memory.blocks_by_tag")
    op.execute(
        "ALTER TABLE memory.blocks DROP COLUMN template_id, DROP COLUMN base_template_id, DROP COLUMN deployment_id,"
        " DROP COLUMN entity_id, DROP COLUMN preserve_on_migration"
    )
