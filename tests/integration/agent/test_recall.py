"""What conversation_search finds: all that left the window, whoever said it, and not what the model sees anyway."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.agent.adapters.recall import PostgresRecall
from services.agent.facts import Settings
from services.agent.messages import Call, Decision, Return, Text
from services.agent.ports import CallSite
from services.common.errors import OutOfRange
from services.common.ids import uuid7
from services.common.migrate import migrate
from tests.conftest import DatabaseUrl
from tests.integration.agent.world import ORGANIZATION, World, calls, says, text, world_on

TOO_LONG = OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW")


@pytest.fixture(scope="module")
def agent_url(database_url: DatabaseUrl) -> str:
    """A migrated database."""
    url = database_url("agent")
    asyncio.run(migrate(url, "services.agent"))
    return url


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """One agent in it."""
    async with world_on(agent_url) as made:
        yield made


async def found(world: World, run_id: UUID, **arguments: Any) -> list[tuple[str, str]]:
    """Role and text of what a run of the agent finds, sorted."""
    settings = Settings(1, "loci/demo", "loci/hash", "", 32_000)
    site = CallSite(ORGANIZATION, world.agent_id, world.agent_id, run_id, run_id, settings)
    call = Call("key", "call", "conversation_search", orjson.dumps({"limit": 50, **arguments}).decode())
    returned = (await PostgresRecall(world.pool).search(call, site)).text
    if returned == "No messages were found.":
        return []
    return sorted((message["role"], message["content"]) for message in orjson.loads(returned))


async def test_a_run_finds_what_was_compacted_away_in_it_and_not_what_it_sees(world: World) -> None:
    async def read(call: Call) -> str:
        return f"The heron chapter. {'x' * 8_000}"

    async def look(call: Call) -> str:
        return "A heron flew by."

    seen: dict[str, list[tuple[str, str]]] = {}

    async def search(call: Call) -> str:
        seen["now"] = [(role, said[:20]) for role, said in await found(world, request.run_id, query="heron")]
        return "found"

    async with world.replica() as replica:
        replica.tools.actions = {"read": read, "look": look, "search": search}
        opening = says(Text("I look for the heron."), Call("", "call_0", "read", "{}"), finish="tool_calls")
        replica.models.replies = [opening, calls("read"), calls("look"), TOO_LONG, calls("search"), text("Here.")]
        request = world.request("Where is the heron?")
        await replica.send(request)
    summaries = "SELECT count(*) FROM agent.messages WHERE agent_id = $1 AND role = 'summary'"
    assert await world.pool.fetchval(summaries, world.agent_id) == 1
    head = await world.pool.fetchrow(
        "SELECT window_seq, log_id FROM agent.conversation_heads WHERE conversation_id = $1", world.agent_id
    )
    rows = await world.pool.fetch(
        "SELECT role, content FROM agent.messages WHERE log_id = $1 AND seq < $2 AND role <> 'summary'",
        head["log_id"],
        head["window_seq"],
    )
    left = [(row["role"], part["text"][:20]) for row in rows for part in row["content"] if "heron" in str(part)]
    assert left
    assert seen["now"] == sorted(left)


async def test_every_role_is_found_but_no_summary_hides_what_it_stands_for(world: World) -> None:
    gone = world.request("An otter swims.")
    async with world.replica() as replica:
        replica.tools.actions = {}
        replica.models.replies = [text("An otter indeed.")]
        await replica.send(gone)
    await world.pool.execute(
        "INSERT INTO agent.messages"
        " (organization_id, log_id, seq, id, agent_id, conversation_id, role, content, search)"
        " SELECT $1, log_id, next_seq + n, gen_random_uuid(), $2, $2, role,"
        " jsonb_build_array(jsonb_build_object('type', 'text', 'text', role || ' otter')),"
        " to_tsvector('english', role || ' otter')"
        " FROM agent.conversation_heads, unnest(ARRAY['system', 'summary', 'tool']) WITH ORDINALITY AS r(role, n)"
        " WHERE conversation_id = $2",
        ORGANIZATION,
        world.agent_id,
    )
    assert await found(world, uuid7(), query="otters") == [
        ("assistant", "An otter indeed."),
        ("system", "system otter"),
        ("tool", "tool otter"),
        ("user", "An otter swims."),
    ]
    assert await found(world, uuid7(), query="otter", roles=["tool"]) == [("tool", "tool otter")]


async def test_a_clients_answer_is_found_where_it_led_to(world: World) -> None:
    await world.add_agent(tool_rules=[{"type": "requires_approval", "tool_name": "delete"}])
    async with world.replica() as replica:
        replica.tools.actions = {"delete": lambda call: asyncio.sleep(0, "gone")}
        replica.models.replies = [calls("delete"), text("Well."), calls("delete", "delete")]
        await replica.send(world.request("One."))
        await replica.send(world.answer(Decision("call_0", reason="because of the beaver")))
        assert [role for role, _ in await found(world, uuid7(), query="beaver")] == ["tool"]
        await replica.send(world.request("Two."))
        # Half an answer, of which nothing has come.
        await replica.send(world.answer(Return("call_0", "", "a walrus")))
    assert [role for role, _ in await found(world, uuid7(), query="walrus")] == ["approval"]
