"""The table of jobs."""

from sqlalchemy import Column, DateTime, Index, Integer, PrimaryKeyConstraint, Table, Text, UniqueConstraint, text

from services.memory.sql.columns import flag, id_column, metadata, time

jobs = Table(
    "jobs",
    metadata,
    id_column("id"),
    id_column("organization_id"),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    time("not_before"),
    Column("failures", Integer, nullable=False, server_default=text("0")),
    id_column("worker_id", nullable=True),
    Column("leased_until", DateTime(timezone=True)),
    flag("again"),
    time("created_at"),
    PrimaryKeyConstraint("id"),
    UniqueConstraint("organization_id", "kind", "subject", name="jobs_one_per_subject"),
    Index("jobs_by_time", "not_before"),
    comment="reference: work is claimed before its tenant is known; small, and empty when idle",
)
