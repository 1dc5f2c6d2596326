"""The tables of samples of words."""

from sqlalchemy import REAL, BigInteger, Column, ForeignKeyConstraint, PrimaryKeyConstraint, Table, Text

from services.memory.sql.columns import id_column, metadata, time

word_counts = Table(
    "word_counts",
    metadata,
    id_column("organization_id"),
    id_column("scope_id"),
    Column("lexeme", Text(collation="C"), nullable=False),
    Column("share", REAL, nullable=False),
    PrimaryKeyConstraint("organization_id", "scope_id", "lexeme"),
    ForeignKeyConstraint(
        ["organization_id", "scope_id"],
        ["memory.word_samples.organization_id", "memory.word_samples.scope_id"],
        name="word_counts_sample_fkey",
        ondelete="CASCADE",
    ),
)
word_samples = Table(
    "word_samples",
    metadata,
    id_column("organization_id"),
    id_column("scope_id"),
    Column("passages", BigInteger, nullable=False),
    Column("sampled", BigInteger, nullable=False),
    time("taken_at"),
    PrimaryKeyConstraint("organization_id", "scope_id"),
)
