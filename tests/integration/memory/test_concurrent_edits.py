"""Many agents write the same blocks at once: no edit is lost, none is made twice, every version is in history."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import block_service_pb2 as pb
from tests.integration.memory.harness import ConceptModels, Memory, embeddings, memory_service

WRITERS, EDITS, BLOCKS = 20, 15, 3


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_edit_is_lost(memory: Memory, memory_url: str, tmp_path: Path, seed: int) -> None:
    """Half of the writers go to another replica; some calls are sent twice."""
    chance = random.Random(seed)
    labels = [f"shared{number}" for number in range(BLOCKS)]
    first = await memory.agent_with(**dict.fromkeys(labels, "start"))
    shared = await memory.agents.GetAgentMemory(agent_pb.GetAgentMemoryRequest(agent_id=first))
    block_ids = {block.label: block.id for block in shared.memory.blocks}
    agents = [f"agent-{uuid4()}" for _ in range(WRITERS)]
    for agent in agents:
        await memory.agents.CreateAgentMemory(
            agent_pb.CreateAgentMemoryRequest(agent_id=agent, block_ids=block_ids.values())
        )
    written: Counter[str] = Counter()

    async def write(service: Memory, number: int) -> None:
        for edit in range(EDITS):
            label, word = chance.choice(labels), f"w{number}e{edit}."
            written[label] += 1
            repeats = 2 if chance.random() < 0.2 else 1
            arguments: dict[str, Any]
            match chance.randrange(3):
                case 0:
                    arguments = {"tool_name": "core_memory_append", "content": word}
                case 1:
                    arguments = {"tool_name": "memory_insert", "new_string": word}
                case _:
                    arguments = {
                        "tool_name": "memory_replace",
                        "old_string": "start",
                        "new_string": f"start\n{word}",
                    }
            call_key = f"{service.caller.organization_id}-{number}-{edit}"
            calls = (service.apply(agents[number], call_key=call_key, label=label, **arguments) for _ in range(repeats))
            answers = await asyncio.gather(*calls)
            assert not any(answer.is_error for answer in answers), answers

    models = ConceptModels()  # type: ignore[abstract]
    async with (
        embeddings(tmp_path, models) as channel,
        memory_service(memory_url, tmp_path, llm_channel=channel, models=models) as replica,
    ):
        replica.caller = memory.caller
        with memory.of(memory.caller.organization_id):
            await asyncio.gather(*(write((memory, replica)[number % 2], number) for number in range(WRITERS)))
    for label in labels:
        lines = (await memory.value(first, label)).split("\n")
        assert len(lines) == len(set(lines)) == written[label] + 1
        request = pb.ListBlockVersionsRequest(block_id=block_ids[label], page=PageRequest(page_size=1_000))
        history = (await memory.blocks.ListBlockVersions(request)).versions
        assert [version.version for version in history] == list(range(written[label] + 1, 0, -1))
        assert len({version.call_key for version in history}) == len(history)
