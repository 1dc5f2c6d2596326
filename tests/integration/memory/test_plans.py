"""The plans of the statements that matter, among other tenants' rows: indexes, and one tenant's part of them."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import asyncpg
import pytest

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from tests.integration.memory.harness import Memory

# A tenant with one agent, whose archive has the agent's id; a block per passage, attached to an agent of its
# own and owned by a conversation.
TENANT = """
WITH archive AS (
    INSERT INTO memory.archives (
        organization_id, id, name, model_id, passage_count, word_count, created_by_id, last_updated_by_id)
    VALUES ($1, $2, '', $4, $3::int, 2 * $3::int, $2, $2)
), agent AS (
    INSERT INTO memory.agent_archives (organization_id, agent_id, archive_id, is_default)
    VALUES ($1, $2, $2, true)
), passage AS (
    INSERT INTO memory.passages (
        organization_id, archive_id, id, text, tags, words, word_count, created_by_id, last_updated_by_id)
    SELECT $1, $2, gen_random_uuid(), repeat('lorem ipsum ', 40), ARRAY['tag' || number % 50],
        to_tsvector('memory.words', 'cat word' || number)
            || array_to_tsvector(ARRAY['@' || replace($2::text, '-', '')]),
        2, $2, $2
    FROM generate_series(1, $3::int) AS number
    RETURNING organization_id, archive_id, id, tags
), tag AS (
    INSERT INTO memory.passage_tags (organization_id, archive_id, passage_id, tag)
    SELECT organization_id, archive_id, id, tags[1] FROM passage
), block AS (
    INSERT INTO memory.blocks (organization_id, id, label, value, char_limit, created_by_id, last_updated_by_id)
    SELECT organization_id, id, 'human', '', 9, id, id FROM passage
), attached AS (
    INSERT INTO memory.agent_blocks (organization_id, agent_id, block_id, label, position)
    SELECT organization_id, id, id, 'human', 1 FROM passage
), isolated AS (
    INSERT INTO memory.conversation_blocks (organization_id, agent_id, conversation_id, block_id, label)
    SELECT organization_id, id, id, id, 'human' FROM passage
)
INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)
SELECT organization_id, archive_id, id, $4, '[1,0,0,0,0,1]' FROM passage
"""
TABLES = [
    "blocks", "agent_blocks", "conversation_blocks", "passages", "passage_tags", "passage_vectors", "archives",
    "agent_archives",
]  # fmt: skip


@pytest.fixture
async def agent(memory: Memory) -> UUID:
    """An agent with 1,000 passages among ten tenants with 200."""
    await memory.store(await memory.agent_with(), "x")
    model = await memory.pool.fetchval("SELECT id FROM memory.embedding_models")
    agent = uuid4()
    await memory.pool.execute(TENANT, memory.caller.organization_id, agent, 1_000, model)
    for _ in range(10):
        await memory.pool.execute(TENANT, uuid4(), uuid4(), 200, model)
    for table in TABLES:
        await memory.pool.execute(f"VACUUM ANALYZE memory.{table}")
    memory.counter.reset()
    return agent


async def plan(url: str, statement: str, types: str, values: str, *, mode: str) -> str:
    """The plan of a prepared statement, without costs."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"SET plan_cache_mode = {mode}")
        await connection.execute(f"PREPARE asked ({types}) AS {statement}")
        rows = await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE asked ({values})")
    finally:
        await connection.close()
    return "\n".join(row[0] for row in rows)


def read_whole(found: str) -> set[str]:
    """Tables that a plan reads from end to end, apart from those that have a handful of rows here."""
    return set(re.findall(r"Seq Scan on (\w+)", found)) - {"archives", "agent_archives", "embedding_models"}


async def test_reading_a_memory(memory: Memory, memory_url: str, agent: UUID) -> None:
    """On every turn, so with the generic plan that a prepared statement ends with."""
    await memory.agents.GetAgentMemory(agent_pb.GetAgentMemoryRequest(agent_id=f"agent-{agent}"))
    await memory.statement_counts()
    [statement] = memory.counter.texts
    for conversation in ("NULL", f"'{uuid4()}'"):
        values = f"'{memory.caller.organization_id}', '{agent}', {conversation}"
        found = await plan(memory_url, statement, "uuid, uuid, uuid", values, mode="force_generic_plan")
        assert read_whole(found) == set(), found
        assert "passage_tags_by_tag" in found, found
        assert re.search(r"Index Cond: .*\(conversation_id = \$3\)", found), found


async def test_what_an_edit_reads(memory: Memory, memory_url: str, agent: UUID) -> None:
    """Before every edit by a tool, with the generic plan; each of several looks goes down the indexes."""
    await memory.apply(f"agent-{agent}", "core_memory_append", label="human", content="x")
    await memory.statement_counts()
    [statement] = [text for text in memory.counter.texts if "FROM memory.agent_blocks" in text]
    looks = (f"'{{{agent},{uuid4()}}}'", "'{key,other}'", "'{human,human}'", f"'{{{uuid4()},NULL}}'")
    owners = (f"'{{{uuid4()},NULL}}'", "'{1,0}'")
    values = ", ".join((f"'{memory.caller.organization_id}'", *looks, *owners))
    types = ", ".join(("uuid", *("text[]" for _ in range(6))))
    found = await plan(memory_url, statement, types, values, mode="force_generic_plan")
    assert read_whole(found) == set(), found
    assert re.search(r"Index Cond: .*\(conversation_id = look\.conversation_id\)", found), found


async def test_what_an_edit_writes(memory: Memory, memory_url: str, agent: UUID) -> None:
    """Edits of several blocks, with the generic plan."""
    await memory.apply(await memory.agent_with(human="h"), "core_memory_append", label="human", content="x")
    await memory.statement_counts()
    [statement] = [text for text in memory.counter.texts if "WITH wanted AS" in text]
    # The tenant is named after the arrays of blocks.
    values = ", ".join(
        (*("'{}'" for _ in range(5)), f"'{memory.caller.organization_id}'", *("'{}'" for _ in range(14)))
    )
    types = ", ".join((*("text[]" for _ in range(5)), "uuid", *("text[]" for _ in range(14))))
    found = await plan(memory_url, statement, types, values, mode="force_generic_plan")
    assert read_whole(found) == set(), found


@pytest.mark.parametrize("tags", [[], ["tag7"]])
async def test_searching_by_vectors(memory: Memory, memory_url: str, agent: UUID, tags: list[str]) -> None:
    """With a plan for the very values. What a search by words does is seen in test_word_search.py."""
    assert await memory.search(f"agent-{agent}", "word7 word57", tags=tags) != []
    await memory.statement_counts()
    assert sum("SET LOCAL plan_cache_mode = force_custom_plan" in text for text in memory.counter.texts) == 2
    tenant = f"'{memory.caller.organization_id}', ARRAY['{agent}']::uuid[]"
    filters = ", ARRAY['tag7'], 1" if tags else ""
    [statement] = [text for text in memory.counter.texts if "<=>" in text]
    values = f"{tenant}, '[1,0,0,0,0,1]', 50{filters}"
    found = await plan(memory_url, statement, "uuid, uuid[]", values, mode="force_custom_plan")
    assert "passage_vectors_pkey" in found, found
    assert read_whole(found) == set(), found
