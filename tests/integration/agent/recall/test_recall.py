"""What conversation_search finds: all that left the window, whoever said it, and not what the model sees anyway."""

import asyncio
from typing import Any
from uuid import UUID, uuid5

import orjson

from services.agent.core.facts import Settings
from services.agent.core.messages import Call, Decision, Return, Text
from services.agent.core.ports import CallSite
from services.common.errors import OutOfRange
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, World, calls, recall_on, says, text

TOO_LONG = OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW", metadata={"limit": "16000", "requested": "20000"})


async def found(world: World, site: CallSite | None = None, **arguments: Any) -> list[tuple[str, str]]:
    """Role and text of what the agent finds, sorted; in a run of its own, unless it is said where."""
    settings = Settings(1, "loci/demo", "loci/hash", "", 32_000)
    site = site or CallSite(ORGANIZATION, world.agent_id, world.agent_id, uuid7(), uuid7(), settings)
    call = Call("key", "call", "conversation_search", orjson.dumps({"limit": 50, **arguments}).decode())
    returned = (await recall_on(world.pool).search(call, site)).text
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
        site = replica.tools.sites[call.key]
        seen["now"] = [(role, said[:20]) for role, said in await found(world, site, query="heron")]
        return "found"

    async with world.replica() as replica:
        replica.tools.actions = {"read": read, "look": look, "conversation_search": search}
        opening = says(Text("I look for the heron."), Call("", "call_0", "read", "{}"), finish="tool_calls")
        replica.models.replies = [opening, calls("read"), calls("look"), TOO_LONG]
        replica.models.replies += [calls("conversation_search"), text("Here.")]
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


def long_text(words: int) -> str:
    """No two words of it are one, and it has a word at its beginning, in its middle and at its end."""
    distinct = [uuid5(UUID(int=7), str(number)).hex for number in range(words)]
    return " ".join(["Heron.", *distinct[: words // 2], "Otter.", *distinct[words // 2 :], "Beaver."])


async def test_every_word_of_a_message_of_1_mb_is_found(world: World) -> None:
    said = long_text(32_000)
    assert len(said) > 1_000_000
    async with world.replica() as replica:
        replica.models.replies = [text("That was long.")]
        await replica.send(world.request(said))
    for word in ("heron", "otter", "beavers", said.split()[20_000]):
        ((role, shown),) = await found(world, query=word, limit=1)
        assert role == "user"
        assert word.removesuffix("s") in shown.casefold()
        assert len(shown) < 1_000
        assert "characters are left out here" in shown
    ((_, shown),) = await found(world, query="Is there a heron, an otter or a beaver?", limit=1)
    assert all(word in shown for word in ("Heron.", "Otter.", "Beaver."))


async def test_what_is_written_without_spaces_is_found_by_a_part_of_it(world: World) -> None:
    ideographs = "".join(map(chr, range(0x4E00, 0x9F00)))
    async with world.replica() as replica:
        for said in ("我们昨天讨论了自然语言处理的模型。", "We talked of models.", ideographs * 2):
            replica.models.replies = [text("好的")]
            await replica.send(world.request(said))
    assert ("user", "我们昨天讨论了自然语言处理的模型。") in await found(world, query="语言模型", roles=["user"])
    assert await found(world, query="模型", limit=1) == [("user", "我们昨天讨论了自然语言处理的模型。")]


async def test_what_of_a_run_is_not_shown_is_found_in_it(world: World) -> None:
    searched: list[list[tuple[str, str]]] = []

    async def search(call: Call) -> str:
        site = replica.tools.sites[call.key]
        searched.extend([await found(world, site, query=word, limit=1) for word in ("otter", "badger")])
        return "found"

    async def read(call: Call) -> str:
        return f"{'word ' * 10_000} badger {'word ' * 10_000}"

    async with world.replica() as replica:
        replica.tools.return_char_limit = 1_000_000
        replica.tools.actions = {"read": read, "conversation_search": search}
        replica.models.replies = [calls("read"), calls("conversation_search", arguments='{"query": "otter badger"}')]
        await replica.send(world.request(long_text(7_000)))
        shown = replica.models.requests[-1].history
    assert not any("Otter" in part.text for message in shown for part in message.parts if isinstance(part, Text))
    (((asked, otter),), ((returned, badger),)) = searched
    assert (asked, "Otter." in otter) == ("user", True)
    assert (returned, "badger" in badger) == ("tool", True)


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
    assert await found(world, query="otters") == [
        ("assistant", "An otter indeed."),
        ("system", "system otter"),
        ("tool", "tool otter"),
        ("user", "An otter swims."),
    ]
    assert await found(world, query="otter", roles=["tool"]) == [("tool", "tool otter")]


async def test_a_clients_answer_is_found_where_it_led_to(world: World) -> None:
    await world.add_agent(tool_rules=[{"type": "requires_approval", "tool_name": "delete"}])
    async with world.replica() as replica:
        replica.tools.actions = {"delete": lambda call: asyncio.sleep(0, "gone")}
        replica.models.replies = [calls("delete"), text("Well."), calls("delete", "delete")]
        await replica.send(world.request("One."))
        await replica.send(world.answer(Decision("call_0", reason="because of the beaver")))
        assert [role for role, _ in await found(world, query="beaver", limit=1)] == ["tool"]
        await replica.send(world.request("Two."))
        began, gate = asyncio.Event(), asyncio.Event()

        async def delete(call: Call) -> str:
            began.set()
            await gate.wait()
            return "gone"

        replica.tools.actions = {"delete": delete}
        replica.models.replies = [text("Both are gone.")]
        sending = asyncio.create_task(
            replica.send(world.answer(Return("call_0", "", "a walrus"), Decision("call_1", approve=True)))
        )
        await asyncio.wait_for(began.wait(), 10)
        # The other call is being run, so nothing has come of the answer yet.
        assert [role for role, _ in await found(world, query="walrus", limit=1)] == ["approval"]
        gate.set()
        await sending
    assert [role for role, _ in await found(world, query="walrus", limit=1)] == ["tool"]
