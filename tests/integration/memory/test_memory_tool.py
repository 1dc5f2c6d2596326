"""The tool `memory`, and what holds for every tool that changes blocks: limits, and blocks that are read-only."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from uuid import uuid4

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from tests.integration.memory.harness import Memory

LONG = "x" * 20
# Every tool that changes a block, each time to a value that is too long.
EDITS: list[tuple[str, dict[str, Any]]] = [
    ("core_memory_append", {"label": "human", "content": LONG}),
    ("core_memory_replace", {"label": "human", "old_content": "old", "new_content": LONG}),
    ("memory_insert", {"label": "human", "new_string": LONG}),
    ("memory_replace", {"label": "human", "old_string": "old", "new_string": LONG}),
    ("memory_rethink", {"label": "human", "new_memory": LONG}),
    ("rethink_memory", {"target_block_label": "human", "new_memory": LONG}),
    ("rethink_user_memory", {"new_memory": LONG}),
    ("memory_apply_patch", {"label": "human", "patch": f"-old\n+{LONG}"}),
    ("memory_apply_patch", {"label": "", "patch": f"*** Update Block: human\n-old\n+{LONG}"}),
    ("memory", {"command": "str_replace", "path": "human", "old_string": "old", "new_string": LONG}),
    ("memory", {"command": "insert", "path": "human", "insert_text": LONG}),
]
RENAMES: list[tuple[str, dict[str, Any]]] = [
    ("memory_apply_patch", {"label": "", "patch": "*** Update Block: human\n*** Move to: person"}),
    ("memory_apply_patch", {"label": "", "patch": "*** Delete Block: human"}),
    ("memory", {"command": "rename", "old_path": "human", "new_path": "person"}),
    ("memory", {"command": "rename", "path": "human", "description": "d"}),
    ("memory", {"command": "delete", "path": "human"}),
]


async def test_no_tool_exceeds_a_limit_or_touches_what_is_read_only(memory: Memory) -> None:
    agent = await memory.agent_with(human="old")
    key = block_pb.BlockKey(agent_label=block_pb.AgentLabel(agent_id=agent, label="human"))
    for name, draft in (("limit", block_pb2.Block(limit=10)), ("read_only", block_pb2.Block(read_only=True))):
        request = block_pb.UpdateBlockRequest(key=key, block=draft)
        request.update_mask.paths.append(name)
        before = (await memory.blocks.UpdateBlock(request)).block
        for tool, arguments in EDITS if name == "limit" else EDITS + RENAMES:
            answer = await memory.apply(agent, tool, **arguments)
            assert answer.is_error, (tool, arguments)
            expected = r"would be 2\d characters long, and its limit is 10" if name == "limit" else "read-only"
            assert re.search(expected, answer.tool_return), answer.tool_return
            assert await memory.read(agent) == {"human": before}
    long = "x" * 100_001
    creations: list[tuple[str, dict[str, Any]]] = [
        ("memory", {"command": "create", "path": "new", "file_text": long}),
        ("memory_apply_patch", {"label": "", "patch": f"*** Add Block: new\n+{long}"}),
    ]
    for tool, arguments in creations:
        answer = await memory.apply(agent, tool, **arguments)
        assert answer.is_error
        assert "100001 characters long, its limit is 100000" in answer.tool_return
    assert list(await memory.read(agent)) == ["human"]


async def test_the_tool_for_everything(memory: Memory) -> None:
    agent, conversation = await memory.agent_with(human="Rome", own="o"), f"conv-{uuid4()}"
    await memory.isolate(agent, conversation, "own")

    async def five(command: str, key: str, **arguments: Any) -> agent_pb.ApplyToolResponse:
        """The same call several times at once."""
        calls = (
            memory.apply(agent, "memory", call_key=key, conversation_id=conversation, command=command, **arguments)
            for _ in range(5)
        )
        answer = await asyncio.gather(*calls)
        assert len({(one.is_error, one.tool_return) for one in answer}) == 1
        return answer[0]

    created = await five("create", "k1", path="/memories/work/plans", file_text="a", description="d")
    assert (created.is_error, [block.label for block in created.changed_blocks]) == (False, ["work/plans"])
    again = await five("create", "k2", path="work/plans", file_text="b")
    assert (again.is_error, "str_replace" in again.tool_return) == (True, True)
    await five("insert", "k3", path="/memories/work/plans", insert_text="b", insert_line="0")
    await five("str_replace", "k4", path="/memories/work/plans", old_string="a", new_string="c")
    moved = await five("rename", "k5", old_path="/memories/work/plans", new_path="/memories/plans", description="e")
    assert not moved.is_error
    plans = (await memory.read(agent))["plans"]
    assert (plans.value, plans.description, plans.version) == ("b\nc", "e", 4)
    assert [block_pb2.BlockOperation.Name(one.operation)[16:] for one in await memory.history(plans.id)] == [
        "SET", "REPLACE", "INSERT", "CREATE",
    ]  # fmt: skip
    assert {one.call_key for one in await memory.history(plans.id)} == {"k1", "k3", "k4", "k5"}
    # What the conversation has for itself is edited there, and not given away.
    await five("str_replace", "k6", path="own", old_string="o", new_string="mine")
    assert ((await memory.read(agent, conversation))["own"].value, await memory.value(agent, "own")) == ("mine", "o")
    refused = await five("delete", "k7", path="own")
    assert (refused.is_error, "belongs to this conversation" in refused.tool_return) == (True, True)
    gone = await five("delete", "k8", path="plans")
    assert (gone.is_error, list(await memory.read(agent))) == (False, ["human", "own"])
    # Detached, not deleted.
    key = block_pb.BlockKey(block_id=plans.id)
    assert (await memory.blocks.GetBlock(block_pb.GetBlockRequest(key=key))).block.value == "b\nc"
