"""What finds old rows of compiled_prompts."""

from services.common.migrations.indexes import add_index, drop_index

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the index."""
    add_index("agent", "compiled_prompts_by_age", "compiled_prompts USING brin (created_at)")


def downgrade() -> None:
    """Removes it."""
    drop_index("agent", "compiled_prompts_by_age")
