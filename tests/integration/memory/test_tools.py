"""The memory tools, called as the agent service calls them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from services.common.channel import make_channel
from services.common.context import use_context
from services.common.errors import FailedPrecondition, InvalidArgument, NotFound, Unauthenticated
from tests.integration.memory.harness import SIGNER, Memory, fails, memory_service, unavailable

SUMMARY = "--- Previous Summary ---"


async def test_edits_are_stored_reported_and_in_the_history(memory: Memory) -> None:
    agent = await memory.agent_with(human="Name: unknown")
    told = await memory.apply(agent, "core_memory_replace", label="human", old_content="unknown", new_content="Ada")
    assert not told.is_error
    assert "Name: Ada" in told.tool_return
    [changed] = told.changed_blocks
    assert (changed.value, changed.version) == ("Name: Ada", 2)
    await memory.apply(agent, "core_memory_append", label="human", content="Likes Haskell.")
    await memory.apply(agent, "memory_insert", label="human", new_string="# About", insert_line=0)
    await memory.apply(agent, "memory_replace", label="human", old_string="Haskell", new_string="OCaml", call_key="k")
    assert await memory.value(agent, "human") == "# About\nName: Ada\nLikes OCaml."
    versions = await memory.blocks.ListBlockVersions(
        block_pb.ListBlockVersionsRequest(block_id=changed.id, page=PageRequest(page_size=100))
    )
    operations = [block_pb2.BlockOperation.Name(version.operation)[16:] for version in versions.versions]
    assert operations == ["REPLACE", "INSERT", "APPEND", "REPLACE", "CREATE"]
    newest, oldest = versions.versions[0], versions.versions[-1]
    assert (newest.version, newest.value) == (5, "# About\nName: Ada\nLikes OCaml.")
    assert (newest.agent_id, newest.call_key) == (agent, "k")
    assert newest.run_id.startswith("run-")
    assert newest.step_id.startswith("step-")
    assert (oldest.agent_id, oldest.call_key, oldest.value) == ("", "", "Name: unknown")


async def test_the_tools_of_older_agents(memory: Memory) -> None:
    agent = await memory.agent_with(human="h", notes="one\ntwo")
    told = await memory.apply(agent, "memory_rethink", label="notes", new_memory="three\nfour")
    assert (told.is_error, "three\nfour" in told.tool_return) == (False, True)
    await memory.apply(agent, "memory_apply_patch", label="notes", patch="@@ -1 +1 @@\n three\n-four\n+five")
    await memory.apply(agent, "rethink_memory", target_block_label="notes", new_memory="six")
    await memory.apply(agent, "rethink_user_memory", new_memory="Ada")
    assert await memory.value(agent, "human") == "Ada"
    history = await memory.history((await memory.read(agent))["notes"].id)
    assert [(block_pb2.BlockOperation.Name(one.operation)[16:], one.value) for one in history] == [
        ("REWRITE", "six"),
        ("PATCH", "three\nfive"),
        ("REWRITE", "three\nfour"),
        ("CREATE", "one\ntwo"),
    ]
    for tool in ("memory_finish_edits", "finish_rethinking_memory"):
        end = await memory.apply(agent, tool, call_key=tool)
        assert (end.is_error, "complete" in end.tool_return, list(end.changed_blocks)) == (False, True, [])
        assert await memory.apply(agent, tool, call_key=tool) == end


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_rethink", {"label": "human", "new_memory": "new"}),
        ("rethink_memory", {"target_block_label": "human", "new_memory": "new"}),
        ("rethink_user_memory", {"new_memory": "new"}),
        ("memory_apply_patch", {"label": "human", "patch": "-old\n+new"}),
    ],
)
async def test_the_tools_of_older_agents_act_once(memory: Memory, tool: str, arguments: dict[str, Any]) -> None:
    agent = await memory.agent_with(human="old")
    first, *others = await asyncio.gather(
        *(memory.apply(agent, tool, call_key=f"{agent}-once", **arguments) for _ in range(5))
    )
    assert not first.is_error
    assert {answer.tool_return for answer in others} == {first.tool_return}
    await memory.apply(agent, "core_memory_append", label="human", content="later")
    again = await memory.apply(agent, tool, call_key=f"{agent}-once", **arguments)
    assert again.tool_return == first.tool_return
    assert await memory.value(agent, "human") == "new\nlater"


PATCH = """*** Begin Patch
*** Update Block: human
*** Move to: person
@@
-Rome
+Oslo
*** Delete Block: notes
*** Add Block: tasks
+write
*** Update Block: shared
 start
+{}
*** End Patch"""


async def test_a_patch_on_several_blocks_is_one_change(memory: Memory) -> None:
    agent = await memory.agent_with(human="Rome", notes="n", shared="start")
    before = await memory.read(agent)
    answers = await asyncio.gather(
        *(
            memory.apply(agent, "memory_apply_patch", call_key="once", label="", patch=PATCH.format("x"))
            for _ in range(4)
        )
    )
    assert len({answer.tool_return for answer in answers}) == 1
    assert not answers[0].is_error
    assert {label: block.value for label, block in (await memory.read(agent)).items()} == {
        "person": "Oslo",
        "shared": "start\nx",
        "tasks": "write",
    }
    assert {block.label for block in answers[0].changed_blocks} == {"person", "shared", "tasks"}
    newest = (await memory.history(before["human"].id))[0]
    assert (newest.operation, newest.call_key, newest.version) == (block_pb2.BLOCK_OPERATION_PATCH, "once", 2)
    assert [one.value for one in await memory.history(before["notes"].id)] == ["n"]


async def test_a_patch_on_several_blocks_is_all_or_nothing(memory: Memory) -> None:
    agent, other = await memory.agent_with(human="Rome", notes="n", shared="start"), await memory.agent_with(person="p")
    shared = (await memory.read(agent))["human"]
    await memory.blocks.AttachBlock(block_pb.AttachBlockRequest(agent_id=other, block_id=shared.id))
    before = await memory.read(agent)
    told = await memory.apply(agent, "memory_apply_patch", label="", patch=PATCH.format("x"))
    assert told.is_error
    assert "Nothing was changed: an owner of this block has another block labelled 'person'." in told.tool_return
    told = await memory.apply(
        agent, "memory_apply_patch", label="", patch="*** Delete Block: notes\n*** Delete Block: zz"
    )
    assert (told.is_error, "The blocks are: human, shared." in told.tool_return) == (True, True)
    assert await memory.read(agent) == before


async def test_patches_on_shared_blocks_at_once_lose_nothing(memory: Memory) -> None:
    first = await memory.agent_with(a="start", b="start")
    ids = [block.id for block in (await memory.read(first)).values()]
    agents = [first, f"agent-{UUID(int=77)}", f"agent-{UUID(int=78)}"]
    for agent in agents[1:]:
        await memory.agents.CreateAgentMemory(agent_pb.CreateAgentMemoryRequest(agent_id=agent, block_ids=ids))

    async def patch(agent: str, number: int) -> None:
        parts = [f"*** Update Block: {label}\n start\n+{agent} {number}" for label in ("ab" if number % 2 else "ba")]
        told = await memory.apply(agent, "memory_apply_patch", label="", patch="\n".join(parts))
        assert not told.is_error

    await asyncio.gather(*(patch(agent, number) for agent in agents for number in range(6)))
    for block in (await memory.read(first)).values():
        assert len(set(block.value.split("\n"))) == 19


async def summarise(memory: Memory, agent: str, text: str, call_key: str = "") -> agent_pb.ApplyToolResponse:
    """As the platform writes a summary."""
    return await memory.apply(
        agent, "memory_rethink", call_key=call_key, create_missing_block=True, label=SUMMARY, new_memory=text
    )


async def test_the_platform_makes_the_block_that_it_writes_to(memory: Memory) -> None:
    agent = await memory.agent_with(human="h")
    refused = await memory.apply(agent, "memory_rethink", label=SUMMARY, new_memory="first")
    assert refused.is_error
    made = await summarise(memory, agent, "1→ first", "k")
    assert not made.is_error
    [block] = made.changed_blocks
    assert (block.label, block.value, block.description) == (SUMMARY, "1→ first", "Summary of earlier messages")
    assert list(await memory.read(agent)) == ["human", SUMMARY]
    [created] = await memory.history(block.id)
    assert (created.agent_id, created.call_key, created.run_id) == (agent, "k", f"run-{UUID(int=3)}")
    assert not (await summarise(memory, agent, "second")).is_error
    assert await summarise(memory, agent, "1→ first", "k") == agent_pb.ApplyToolResponse(
        tool_return=made.tool_return, changed_blocks=[(await memory.read(agent))[SUMMARY]]
    )
    assert await memory.value(agent, SUMMARY) == "second"
    other = await memory.apply(agent, "core_memory_append", create_missing_block=True, label="unknown", content="x")
    assert other.is_error


async def test_summaries_written_at_once_make_one_block_and_none_is_lost(memory: Memory) -> None:
    agent = await memory.agent_with()
    texts = [f"text {number}" for number in range(6)]
    calls = [summarise(memory, agent, text, f"{agent}-{text}") for text in texts for _ in range(2)]
    assert not any(answer.is_error for answer in await asyncio.gather(*calls))
    [block] = (await memory.read(agent)).values()
    history = await memory.history(block.id)
    assert sorted(one.value for one in history) == texts
    count = "SELECT count(*) FROM memory.blocks WHERE organization_id = $1"
    assert await memory.pool.fetchval(count, memory.caller.organization_id) == 1


async def test_the_platform_too_is_refused_by_limits_and_read_only(memory: Memory) -> None:
    agent = await memory.agent_with()
    assert "its limit is 100000" in (await summarise(memory, agent, "x" * 100_001)).tool_return
    assert await memory.read(agent) == {}
    [block] = (await summarise(memory, agent, "kept")).changed_blocks
    update = block_pb.UpdateBlockRequest(
        key=block_pb.BlockKey(block_id=block.id), block=block_pb2.Block(read_only=True)
    )
    update.update_mask.paths.append("read_only")
    await memory.blocks.UpdateBlock(update)
    told = await summarise(memory, agent, "new")
    assert (told.is_error, "read-only" in told.tool_return) == (True, True)


async def test_a_repeated_call_returns_the_same_and_does_nothing(memory: Memory) -> None:
    agent = await memory.agent_with(human="a")
    first = await memory.apply(agent, "core_memory_append", call_key="once", label="human", content="b")
    await memory.apply(agent, "core_memory_append", label="human", content="c")
    again = await memory.apply(agent, "core_memory_append", call_key="once", label="human", content="b")
    assert again.tool_return == first.tool_return
    assert await memory.value(agent, "human") == "a\nb\nc"
    assert [block.value for block in again.changed_blocks] == ["a\nb\nc"]
    with fails(FailedPrecondition, "CALL_KEY_REUSED"):
        await memory.apply(agent, "core_memory_append", call_key="once", label="human", content="other")


async def test_the_same_call_sent_many_times_at_once_acts_once(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    calls = [memory.apply(agent, "core_memory_append", call_key="same", label="human", content="x") for _ in range(20)]
    calls += [memory.apply(agent, "archival_memory_insert", call_key="stored", content="y") for _ in range(20)]
    answers = await asyncio.gather(*calls)
    assert len({answer.tool_return for answer in answers}) == 2
    assert not any(answer.is_error for answer in answers)
    assert await memory.value(agent, "human") == "x"
    assert len(await memory.search(agent, "y")) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "part"),
    [
        ("core_memory_append", {"label": "nobody", "content": "x"}, "The blocks are: human, persona."),
        ("core_memory_append", {"label": "human"}, 'The argument "content" is missing'),
        ("core_memory_append", {"label": 7, "content": "x"}, 'The argument "label" must be a string'),
        ("core_memory_append", {"label": "human", "content": "x" * 100_000}, "its limit is 100000"),
        ("memory_replace", {"label": "human", "old_string": "zz", "new_string": ""}, "does not occur"),
        ("memory_replace", {"label": "human", "old_string": "a", "new_string": ""}, "on lines 1, 2"),
        ("memory_insert", {"label": "human", "new_string": "x", "insert_line": 9}, "has 2 lines"),
        ("memory_rethink", {"label": "human", "new_memory": "1→ a"}, "line number"),
        ("memory_rethink", {"label": "nobody", "new_memory": "a"}, "The blocks are: human, persona."),
        ("rethink_memory", {"label": "human", "new_memory": "a"}, '"target_block_label" is missing'),
        ("rethink_user_memory", {}, '"new_memory" is missing'),
        ("memory_apply_patch", {"label": "human", "patch": "-a\n+b"}, "on lines 1, 2"),
        ("archival_memory_insert", {"content": ""}, "1 to 1000000 characters"),
        ("archival_memory_search", {"query": "x", "tag_match_mode": "some"}, '"any" or "all"'),
        ("archival_memory_search", {"query": "x", "start_datetime": "yesterday"}, "ISO 8601"),
    ],
)
async def test_what_the_model_did_wrong_is_told_to_it(
    memory: Memory, tool: str, arguments: dict[str, Any], part: str
) -> None:
    agent = await memory.agent_with(human="a\na", persona="p")
    told = await memory.apply(agent, tool, **arguments)
    assert told.is_error
    assert part in told.tool_return
    assert await memory.value(agent, "human") == "a\na"


async def test_errors_too_are_kept_under_their_key(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    first = await memory.apply(agent, "memory_replace", call_key="k", label="human", old_string="a", new_string="b")
    await memory.apply(agent, "core_memory_append", label="human", content="a")
    again = await memory.apply(agent, "memory_replace", call_key="k", label="human", old_string="a", new_string="b")
    assert again == first
    assert first.is_error


async def test_arguments_that_are_no_json_nul_and_half_a_surrogate(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    request = agent_pb.ApplyToolRequest(
        call_key="k1", agent_id=agent, tool_name="core_memory_append", arguments_json="{"
    )
    assert "not valid JSON" in (await memory.agents.ApplyTool(request)).tool_return
    request.call_key, request.arguments_json = "k2", '{"label": "human", "content": "a\\u0000b\\ud83d"}'
    assert not (await memory.agents.ApplyTool(request)).is_error
    assert await memory.value(agent, "human") == "ab\ufffd"
    request.call_key, request.arguments_json = "k3", '{"label": "hu\\u0000man", "content": "c"}'
    assert not (await memory.agents.ApplyTool(request)).is_error


async def test_a_read_only_block_and_an_unknown_tool(memory: Memory) -> None:
    agent = await memory.agent_with(human="a")
    key = block_pb.BlockKey(agent_label=block_pb.AgentLabel(agent_id=agent, label="human"))
    update = block_pb.UpdateBlockRequest(key=key, block=block_pb2.Block(read_only=True))
    update.update_mask.paths.append("read_only")
    await memory.blocks.UpdateBlock(update)
    told = await memory.apply(agent, "core_memory_append", label="human", content="x")
    assert told.is_error
    assert "read-only" in told.tool_return
    with fails(NotFound, "TOOL_NOT_FOUND"):
        await memory.apply(agent, "run_code")
    with fails(InvalidArgument, "CALL_KEY_INVALID"):
        await memory.apply(agent, "core_memory_append", call_key="k" * 201)
    with fails(InvalidArgument, "INVALID_ID"):
        await memory.apply("agent-7", "core_memory_append")


async def test_an_edit_takes_two_statements_and_one_commit(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    memory.counter.reset()
    await memory.apply(agent, "core_memory_append", label="human", content="x")
    assert await memory.statement_counts() == (2, 2)


async def test_archival_memory_by_the_tools(memory: Memory) -> None:
    agent = await memory.agent_with()
    told = await memory.apply(
        agent, "archival_memory_insert", content="My kitten is called Tom.", tags=["pets", "home"]
    )
    assert not told.is_error
    await memory.apply(agent, "archival_memory_insert", content="I drive an old automobile.")
    found = await memory.apply(agent, "archival_memory_search", query="which cat?", top_k=1, timezone="Europe/Berlin")
    answer = json.loads(found.tool_return)
    assert answer["count"] == 1
    [result] = answer["results"]
    assert result["content"] == "My kitten is called Tom."
    assert result["tags"] == ["home", "pets"]
    assert result["id"] in told.tool_return
    assert datetime.fromisoformat(result["timestamp"]).utcoffset() is not None
    assert "note" not in answer
    assert memory.models.callers[0] == memory.caller


async def test_tags_and_dates_narrow_the_search(memory: Memory) -> None:
    agent = await memory.agent_with()
    await memory.apply(agent, "archival_memory_insert", content="cat one", tags=["a"])
    await memory.apply(agent, "archival_memory_insert", content="cat two", tags=["a", "b"])
    await memory.apply(agent, "archival_memory_insert", content="cat three")

    async def found(**arguments: Any) -> set[str]:
        told = await memory.apply(agent, "archival_memory_search", query="cat", **arguments)
        return {result["content"] for result in json.loads(told.tool_return)["results"]}

    assert await found() == {"cat one", "cat two", "cat three"}
    assert await found(tags=["a"]) == {"cat one", "cat two"}
    assert await found(tags=["a", "b"]) == {"cat one", "cat two"}
    assert await found(tags=["a", "b"], tag_match_mode="all") == {"cat two"}
    assert await found(start_datetime="2020-01-01", end_datetime="2020-12-31") == set()
    assert len(await found(start_datetime="2020-01-01", end_datetime="2999-12-31")) == 3


async def test_without_the_embedding_model_search_says_so_and_insert_stores_nothing(memory: Memory) -> None:
    agent = await memory.agent_with()
    await memory.apply(agent, "archival_memory_insert", content="Tom is a kitten.")
    memory.models.failure = unavailable()
    found = json.loads((await memory.apply(agent, "archival_memory_search", query="kitten")).tool_return)
    assert [result["content"] for result in found["results"]] == ["Tom is a kitten."]
    assert "words alone" in found["note"]
    told = await memory.apply(agent, "archival_memory_insert", call_key="k", content="Rex is a dog.")
    assert told.is_error
    assert "Nothing was stored" in told.tool_return
    assert "the provider is down" in told.tool_return
    memory.models.failure = None
    assert (await memory.apply(agent, "archival_memory_insert", call_key="k", content="Rex is a dog.")) == told
    assert len(await memory.search(agent, "dog kitten")) == 1


async def test_an_agent_without_embeddings_is_found_by_words(memory: Memory) -> None:
    agent = await memory.agent_with()
    told = await memory.apply(agent, "archival_memory_insert", content="The Zürich café opens at 9.", embedding="")
    assert not told.is_error
    answer = await memory.apply(agent, "archival_memory_search", query="zurich cafes", embedding="")
    assert json.loads(answer.tool_return)["count"] == 1
    assert memory.models.callers == []


async def test_a_gateway_that_is_away_does_not_keep_a_search_waiting(
    memory: Memory, memory_url: str, tmp_path: Path
) -> None:
    agent = await memory.agent_with()
    await memory.apply(agent, "archival_memory_insert", content="Tom is a kitten.")
    async with (
        make_channel(f"unix://{tmp_path}/nobody.sock") as nobody,
        memory_service(memory_url, tmp_path, llm_channel=nobody, models=memory.models, search_seconds=0.5) as alone,
    ):
        with memory.of(memory.caller.organization_id):
            async with asyncio.timeout(20):
                told = await alone.apply(agent, "archival_memory_search", query="kitten")
    assert json.loads(told.tool_return)["count"] == 1
    assert "words alone" in told.tool_return


async def test_nobody_is_served_without_a_context_for_memory(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    request = agent_pb.GetAgentMemoryRequest(agent_id=agent)
    for audience, reason in (((), "CONTEXT_WRONG_AUDIENCE"), (("agent",), "CONTEXT_WRONG_AUDIENCE")):
        stranger = SIGNER.signed(replace(memory.caller, audience=audience))
        with use_context(stranger), fails(Unauthenticated, reason):
            await memory.agents.GetAgentMemory(request)
    with fails(Unauthenticated, "CONTEXT_INVALID"):
        await memory.agents.GetAgentMemory(request, metadata=(("loci-context-bin", b"forged"),))
