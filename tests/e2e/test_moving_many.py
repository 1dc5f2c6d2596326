"""`loci import` of an agent with 100,000 messages: within bounds of time and memory, every one accounted for.

It takes a minute, so it runs where LOCI_TEST_LARGE_IMPORT is set alone.
"""

import asyncio
import json
import os
import resource
import subprocess
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests import letta_database
from tests.e2e.stack import running
from tests.e2e.test_moving_in import Moving
from tests.letta_database import ORGANIZATION, World, identifier, llm_config

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.timing,
    pytest.mark.skipif(
        not os.environ.get("LOCI_TEST_LARGE_IMPORT"),
        reason="100,000 messages take a minute: set LOCI_TEST_LARGE_IMPORT=1",
    ),
]
MESSAGES, IN_WINDOW = 100_000, 500
SECONDS, MEBIBYTES = 300, 400
AGENT = identifier("agent", 0)
_MESSAGES = """
INSERT INTO messages (id, agent_id, organization_id, role, content, tool_calls, created_at)
SELECT 'message-' || md5(n::text)::uuid, $1, $2, CASE n % 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
    json_build_array(json_build_object('type', 'text', 'text', n || repeat(' words', 40))), '[]',
    timestamptz '2025-03-01' + n * interval '1 s'
FROM generate_series(1, $3::int) n ORDER BY n
"""
_WINDOW = """
UPDATE agents SET message_ids = (
    SELECT json_agg(id ORDER BY sequence_id) FROM messages WHERE sequence_id > $1) WHERE id = $2
"""


async def fill(moving: Moving) -> None:
    """Makes the old server's database with one agent."""
    connection = await asyncpg.connect(moving.url("postgres"))
    await connection.execute("CREATE DATABASE letta")
    await connection.close()
    world = World()
    world.add("organizations", id=ORGANIZATION)
    world.add("agents", id=AGENT, name="old", agent_type="letta_v1_agent", llm_config=llm_config("gpt-4o"))
    await letta_database.create(moving.url(), world)
    connection = await asyncpg.connect(moving.url())
    await connection.execute(_MESSAGES, AGENT, ORGANIZATION, MESSAGES)
    await connection.execute(_WINDOW, MESSAGES - IN_WINDOW, AGENT)
    await connection.close()


def test_a_hundred_thousand_messages(tmp_path: Path) -> None:
    with running({}) as stack:
        moving = Moving(stack)
        asyncio.run(fill(moving))
        file = tmp_path / "report.json"
        began = time.monotonic()
        command = moving.command("--report", str(file))
        process = subprocess.run(**command, capture_output=True, timeout=2 * SECONDS, check=False)
        seconds, peak = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{MESSAGES:,} messages in {seconds:.0f} s, at most {peak:.0f} MiB in one process")
        assert process.returncode == 0, process.stderr
        messages: dict[str, Any] = json.loads(file.read_text())["tables"]["messages"]
        assert (messages["rows"], messages["taken"], messages["left_out"]) == (MESSAGES, MESSAGES, 0)
        assert moving.rows("SELECT count(*) FROM agent.messages")[0][0] == MESSAGES
        assert seconds < SECONDS
        assert peak < MEBIBYTES
