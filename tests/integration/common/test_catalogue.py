"""The check of the catalogue finds every way to break the rule, and nothing else."""

import asyncpg
import pytest

from tests.conftest import DatabaseUrl
from tests.integration.catalogue import assert_keys_begin_with_tenant, broken_rules

GOOD = """
CREATE TABLE memory.blocks (organization_id uuid, id uuid, label text, PRIMARY KEY (organization_id, id),
                            UNIQUE (organization_id, label));
CREATE TABLE memory.history (organization_id uuid NOT NULL, id uuid, block_id uuid, at timestamptz,
    PRIMARY KEY (organization_id, id, at),
    FOREIGN KEY (organization_id, block_id) REFERENCES memory.blocks (organization_id, id)) PARTITION BY RANGE (at);
CREATE TABLE memory.history_1 PARTITION OF memory.history FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE INDEX ON memory.history (block_id);
CREATE UNIQUE INDEX ON memory.blocks (organization_id, lower(label)) INCLUDE (id);
CREATE TABLE memory.api_keys (hash bytea PRIMARY KEY, organization_id uuid);
COMMENT ON TABLE memory.api_keys IS 'reference: finds the tenant of a key';
CREATE TABLE memory.alembic_version (version_num varchar(32) PRIMARY KEY);
"""
BAD = """
CREATE TABLE memory.a (organization_id uuid, id uuid PRIMARY KEY);
CREATE TABLE memory.b (organization_id uuid NOT NULL, id uuid, UNIQUE (id, organization_id));
CREATE TABLE memory.c (id uuid PRIMARY KEY);
COMMENT ON TABLE memory.c IS 'reference: ';
CREATE TABLE memory.d (organization_id text, id uuid, PRIMARY KEY (organization_id, id));
CREATE TABLE memory.e (organization_id uuid, id uuid, label text, a_id uuid REFERENCES memory.a (id),
                       PRIMARY KEY (organization_id, id));
CREATE UNIQUE INDEX e_label ON memory.e (lower(label), organization_id);
"""


async def test_good_tables_pass(fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("memory")
    connection = await asyncpg.connect(url)
    await connection.execute(GOOD)
    await connection.close()
    await assert_keys_begin_with_tenant(url, "memory")
    with pytest.raises(AssertionError, match="agent: has no tables"):
        await assert_keys_begin_with_tenant(url, "agent")


async def test_each_bad_table_is_named(fresh_database_url: DatabaseUrl) -> None:
    connection = await asyncpg.connect(fresh_database_url("memory"))
    await connection.execute(GOOD + BAD)
    found = await broken_rules(connection, "memory")
    await connection.close()
    assert found == [
        "a.a_pkey: primary key (id)",
        "a: organization_id is not uuid NOT NULL",
        "b.b_id_organization_id_key: unique (id, organization_id)",
        "b: has no primary key",
        "c.c_pkey: primary key (id)",
        "c: has no organization_id",
        "d: organization_id is not uuid NOT NULL",
        "e.e_a_id_fkey: foreign key (a_id)",
        "e.e_label: unique (<expression>, organization_id)",
    ]
