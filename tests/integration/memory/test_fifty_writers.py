"""Fifty writers make a thousand edits each on ten shared blocks: none is lost, and history replays to the value."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import orjson

from services.common.engine import make_engine
from services.memory.agent_tools.edit_queues import EditQueues
from services.memory.agent_tools.model import ToolCall
from services.memory.agent_tools.service import ToolService
from services.memory.blocks.conflicts import EditRetries
from services.memory.blocks.model import BlockById, BlockDraft, Operation
from services.memory.blocks.service import BlockService
from services.memory.bootstrap import open_memory_pool, postgres_stores
from services.memory.core.editing import edits

WRITERS, EDITS, BLOCKS = 50, 1_000, 10
ORGANIZATION, USER = uuid4(), uuid4()


@dataclass
class Writer:
    """One agent's writer, who changes only what it wrote itself. words: by label those that must be there now."""

    number: int
    agent_id: UUID = field(default_factory=uuid4)
    words: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def calls(self) -> Any:
        """Its tool calls, one after the other. The first line, "start", stays."""
        chance = random.Random(self.number)
        for edit in range(EDITS):
            label, word = f"shared{chance.randrange(BLOCKS)}", f"<{self.number}.{edit}>"
            yield self._call(f"{self.number}.{edit}", label, word, chance)

    def _call(self, key: str, label: str, word: str, chance: random.Random) -> ToolCall:
        arguments: dict[str, Any]
        mine = self.words[label]
        match chance.randrange(5) if mine else chance.randrange(2):
            case 0:
                name, arguments = "core_memory_append", {"content": word}
            case 1:
                name, arguments = "memory_insert", {"new_string": word, "insert_line": chance.choice((1, -1))}
            case 2:
                name, arguments = "memory_replace", {"old_string": mine.pop(), "new_string": word}
            case _:
                name, arguments, word = (
                    "core_memory_replace",
                    {"old_content": f"\n{mine.pop(0)}", "new_content": ""},
                    "",
                )
        mine += [word] if word else []
        return ToolCall(
            organization_id=ORGANIZATION,
            user_id=USER,
            agent_id=self.agent_id,
            run_id=None,
            step_id=None,
            call_key=key,
            tool_name=name,
            arguments_json=orjson.dumps({"label": label, **arguments}).decode(),
        )


def replayed(value: str, call: ToolCall) -> tuple[str, Operation]:
    """The value after a call, and what history calls that."""
    given = orjson.loads(call.arguments_json)
    match call.tool_name:
        case "core_memory_append":
            edit = edits.append(value, given["content"])
        case "memory_insert":
            edit = edits.insert(value, given["new_string"], given["insert_line"])
        case "memory_replace":
            edit = edits.replace_one(value, given["old_string"], given["new_string"])
        case _:
            edit = edits.replace_every(value, given["old_content"], given["new_content"])
    return edit.value, edit.operation


async def test_no_edit_of_fifty_thousand_is_lost(memory_url: str) -> None:
    """Some calls are sent twice, and a user changes the descriptions meanwhile."""
    engine = make_engine(memory_url)
    async with await open_memory_pool(memory_url) as pool:
        stores, conflicts = postgres_stores(pool, engine), EditRetries()
        blocks = BlockService(stores.blocks, stores.history, conflicts)
        nothing: Any = None  # archives and files: no call of these tools asks for them
        lines = EditQueues(stores.blocks, stores.calls)
        tools = ToolService(lines, stores.agents, stores.copies, stores.calls, nothing, nothing, conflicts, nothing)
        created = {f"shared{number}": uuid4() for number in range(BLOCKS)}
        drafts = [BlockDraft(id=block_id, label=label, value="start") for label, block_id in created.items()]
        await stores.agents.create(ORGANIZATION, USER, uuid4(), drafts, [])
        writers = [Writer(number) for number in range(WRITERS)]
        for writer in writers:
            await stores.agents.create(ORGANIZATION, USER, writer.agent_id, [], list(created.values()))
        calls: dict[str, ToolCall] = {}

        async def write(writer: Writer) -> None:
            for call in writer.calls():
                calls[call.call_key] = call
                twice = 2 if len(calls) % 50 == 0 else 1
                for answer in await asyncio.gather(*(tools.apply(call) for _ in range(twice))):
                    assert not answer.is_error, answer.tool_return

        async def describe(block_id: UUID) -> None:
            for number in range(20):
                await asyncio.sleep(0.05)
                changes = {"description": str(number)}
                key = BlockById(block_id)
                await blocks.update(ORGANIZATION, USER, key, changes, None)

        await asyncio.gather(*map(write, writers), *map(describe, created.values()))

        for label, block_id in created.items():
            rows = await pool.fetch(
                "SELECT version, value, operation, call_key, created_at FROM memory.block_history"
                " WHERE organization_id = $1 AND block_id = $2 ORDER BY version",
                ORGANIZATION,
                block_id,
            )
            value, keys = "start", list[str]()
            for before, row in pairwise(rows):
                assert row["version"] == before["version"] + 1
                assert row["created_at"] > before["created_at"]
                operation = Operation.SET
                if row["call_key"] is not None:
                    keys.append(row["call_key"])
                    value, operation = replayed(value, calls[row["call_key"]])
                assert (row["value"], row["operation"]) == (value, operation)
            expected = {key for key, call in calls.items() if orjson.loads(call.arguments_json)["label"] == label}
            assert len(keys) == len(expected) == len(expected.intersection(keys))
            block = await stores.blocks.get(ORGANIZATION, BlockById(block_id))
            assert (block.value, block.version, block.description) == (value, len(expected) + 21, "19")
            left = sorted(word for writer in writers for word in writer.words[label])
            assert block.value.split("\n")[0] == "start"
            assert sorted(block.value.split("\n")[1:]) == left
        assert len(calls) == WRITERS * EDITS
    await engine.dispose()
