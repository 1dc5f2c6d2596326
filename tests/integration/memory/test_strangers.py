"""Texts as strangers' programs write them: code pages, line ends, forms of letters."""

from __future__ import annotations

from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_pb
from tests.integration.memory.files import new_folder, read, upload
from tests.integration.memory.harness import Memory
from tests.integration.memory.test_ingestion import InProcess, files_worker, run


async def test_a_text_of_windows_says_what_was_assumed(memory: Memory) -> None:
    folder_id = await new_folder(memory, "windows")
    texts = {"names.csv": "id;name\n1;Mu\u00f1oz", "said.txt": "\u201chello\u201d it\u2019s", "plain.txt": "Mu\u00f1oz"}
    stored = {
        name: await upload(memory, folder_id, name, text.encode("utf-8" if name == "plain.txt" else "cp1252"))
        for name, text in texts.items()
    }
    await run(memory, files_worker(memory, InProcess()))
    files = {name: await read(memory, file) for name, file in stored.items()}
    assert {name: file.content for name, file in files.items()} == texts
    assert {name: file.media_type for name, file in files.items()} == {
        "names.csv": "text/csv; charset=windows-1252",
        "said.txt": "text/plain; charset=windows-1252",
        "plain.txt": "text/plain",
    }


async def test_a_block_with_other_line_ends_is_edited(memory: Memory) -> None:
    agent = await memory.agent_with(human="one\r\ntwo\r\nthree")
    told = await memory.apply(agent, "memory_replace", label="human", old_string="one\ntwo", new_string="1\n2")
    assert not told.is_error, told.tool_return
    assert await memory.value(agent, "human") == "1\r\n2\r\nthree"


async def test_labels_are_one_in_whatever_form(memory: Memory) -> None:
    agent = await memory.agent_with(Café="open")
    key = block_pb.BlockKey(agent_label=block_pb.AgentLabel(agent_id=agent, label="Cafe\u0301"))
    update = block_pb.UpdateBlockRequest(key=key, block=block_pb2.Block(value="closed"))
    update.update_mask.paths.append("value")
    await memory.blocks.UpdateBlock(update)
    assert await memory.value(agent, "Caf\u00e9") == "closed"
    told = await memory.apply(agent, "core_memory_append", label="Cafe\u0301", content="today")
    assert not told.is_error, told.tool_return
    found = await memory.blocks.ListBlocks(block_pb.ListBlocksRequest(label="Cafe\u0301"))
    assert [block.value for block in found.blocks] == ["closed\ntoday"]
