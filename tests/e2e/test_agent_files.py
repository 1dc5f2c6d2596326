"""Files of agents through the official client: a folder attached, tools that come with it, what the model is shown."""

from functools import partial
from typing import Any

import httpx
import orjson
import pytest
from letta_client import APIStatusError

from tests.e2e.helpers import BLOCKS, finished_file
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.polling import wait_until

MODEL = "openai/gpt-4o-mini"
TOOLS = ["open_files", "grep_files", "semantic_search_files"]
HANDBOOK = "# Holidays\n\nEverybody has 30 days off.\n\n# Tea\n\nTea is at four.\n"
NOTES = "\n".join(f"note {number}" for number in range(1, 101))


def folder_with(client: Any, name: str, **texts: str) -> Any:
    """A folder whose files can be opened."""
    folder = client.folders.create(name=name, embedding="loci/hash")
    for stem, text in texts.items():
        client.folders.files.upload(folder.id, file=(f"{stem}.md", text.encode(), "text/markdown"))
    files = client.folders.files
    wait_until(lambda: all(file.processing_status == "completed" for file in files.list(folder.id)), 30, pause=0.1)
    return folder


def system(openai_fake: OpenAIServer) -> str:
    """The prompt of the last call."""
    prompt: str = openai_fake.bodies("/chat/completions")[-1]["messages"][0]["content"]
    return prompt


def test_an_agent_reads_the_files_of_a_folder(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    folder = folder_with(client, "bureau", handbook=HANDBOOK, notes=NOTES)
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, max_files_open=1, include_base_tools=False)
    assert (agent.sources, agent.tools) == ([], [])
    assert client.agents.folders.attach(folder.id, agent_id=agent.id) is None
    agent = client.agents.retrieve(agent.id, include=["agent.tools", "agent.sources", "agent.blocks"])
    assert [tool.name for tool in agent.tools] == TOOLS
    assert {tool.tool_type for tool in agent.tools} == {"letta_files_core"}
    assert [(source.id, source.name) for source in agent.sources] == [(folder.id, "bureau")]
    assert [one.id for one in client.agents.folders.list(agent.id)] == [folder.id]
    assert list(client.folders.agents.list(folder.id)) == [agent.id]

    # The first is open at once, and in view.
    blocks = {block.label: block for block in agent.memory.file_blocks}
    assert {label: block.is_open for label, block in blocks.items()} == {
        "bureau/handbook.md": True,
        "bureau/notes.md": False,
    }
    opened = list(client.agents.files.list(agent.id, is_open=True))
    assert [(file.file_name, file.folder_name, file.start_line, file.end_line) for file in opened] == [
        ("bureau/handbook.md", "bureau", None, None)
    ]
    assert blocks["bureau/handbook.md"].value == opened[0].visible_content
    assert (blocks["bureau/handbook.md"].read_only, blocks["bureau/notes.md"].value) == (True, "")
    assert "2: Everybody has 30 days off." in opened[0].visible_content
    openai_fake.reply(Reply(text="30 days."))
    client.agents.messages.create(agent.id, input="How many days do I have off?")
    assert '<file status="open" name="bureau/handbook.md">' in system(openai_fake)
    assert "2: Everybody has 30 days off." in system(openai_fake)
    assert '<file status="closed" name="bureau/notes.md">' in system(openai_fake)

    # The model looks for something, opens another file, and sees it in the answer; the prompt follows in the next turn.
    look = ToolCall("grep_files", {"pattern": "note 5[67]$", "context_lines": 0})
    find = ToolCall("semantic_search_files", {"query": "when is tea", "limit": 1})
    open_notes = ToolCall(
        "open_files", {"file_requests": [{"file_name": "bureau/notes.md", "offset": 50, "length": 9}]}
    )
    openai_fake.reply(Reply(calls=(look,)), Reply(calls=(find,)), Reply(calls=(open_notes,)), Reply(text="Here."))
    reply = client.agents.messages.create(agent.id, input="Where are notes 56 and 57?")
    returned = [one.tool_return for one in reply.messages if one.message_type == "tool_return_message"]
    assert "> 56: note 56\n> 57: note 57" in returned[0]
    assert orjson.loads(returned[1])["results"][0]["file_name"] == "bureau/handbook.md"
    assert "[Viewing lines 51 to 59 (out of 100 lines)]\n51: note 51" in returned[2]
    assert "Closed: bureau/handbook.md." in returned[2]
    assert "bureau/handbook.md" in system(openai_fake).partition('<file status="open"')[2].partition("<metadata>")[0]
    openai_fake.reply(Reply(text="Still here."))
    client.agents.messages.create(agent.id, input="And now?")
    assert "[Viewing lines 51 to 59 (out of 100 lines)]\n51: note 51" in system(openai_fake)
    assert "30 days off" not in system(openai_fake).partition("<directories>")[2]

    # By hand.
    files = {file.file_name: file.file_id for file in client.agents.files.list(agent.id, limit=1)}
    assert len(files) == 2  # the client turns the pages
    assert client.agents.files.open(files["bureau/handbook.md"], agent_id=agent.id) == ["bureau/notes.md"]
    client.agents.files.close(files["bureau/notes.md"], agent_id=agent.id)
    assert client.agents.files.close_all(agent.id) == ["bureau/handbook.md"]
    assert list(client.agents.files.list(agent.id, is_open=True)) == []

    assert client.agents.folders.detach(folder.id, agent_id=agent.id) is None
    agent = client.agents.retrieve(agent.id, include=["agent.tools", "agent.sources"])
    assert (agent.tools, agent.sources) == ([], [])
    openai_fake.reply(Reply(text="Gone."))
    client.agents.messages.create(agent.id, input="What is left?")
    assert "<directories>" not in system(openai_fake)
    assert "tools" not in openai_fake.bodies("/chat/completions")[-1]


def test_folders_are_named_when_an_agent_is_made_and_changed(stack: Stack) -> None:
    client = stack.client()
    first, second = (folder_with(client, name) for name in ("first", "second"))
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, folder_ids=[first.id])
    assert [source.id for source in client.agents.retrieve(agent.id, include=["agent.sources"]).sources] == [first.id]
    assert set(TOOLS) <= {tool.name for tool in agent.tools}
    agent = client.agents.update(agent.id, folder_ids=[second.id])
    assert [source.id for source in agent.sources] == [second.id]
    assert set(TOOLS) <= {tool.name for tool in agent.tools}
    agent = client.agents.update(agent.id, source_ids=[])
    assert agent.sources == []
    assert not set(TOOLS) & {tool.name for tool in agent.tools}
    listed = {one.id: one for one in client.agents.list(include=["agent.sources"])}
    assert listed[agent.id].sources == []
    older = httpx.patch(f"{stack.url}/v1/agents/{agent.id}/sources/attach/{first.id}", timeout=30)
    assert (older.status_code, older.json()) == (200, None)
    assert [one["id"] for one in httpx.get(f"{stack.url}/v1/agents/{agent.id}/sources", timeout=30).json()] == [
        first.id
    ]
    other = client.agents.create(model=MODEL, memory_blocks=BLOCKS, folder_ids=[second.id])
    client.folders.delete(second.id)
    other = client.agents.retrieve(other.id, include=["agent.tools", "agent.sources"])
    assert (other.sources, set(TOOLS) & {tool.name for tool in other.tools}) == ([], set())
    client.agents.delete(agent.id)
    wait_until(lambda: not list(client.folders.agents.list(first.id)), pause=0.1)


def test_a_file_is_in_view_when_it_is_there(stack: Stack) -> None:
    client = stack.client()
    folder = folder_with(client, "inbox", old="old")
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, folder_ids=[folder.id], max_files_open=2)
    assert [(block.label, block.is_open) for block in agent.memory.file_blocks] == [("inbox/old.md", True)]
    upload = partial(client.folders.files.upload, folder.id, duplicate_handling="replace")

    def views() -> dict[str, str]:
        files = client.agents.retrieve(agent.id, include=["agent.blocks"]).memory.file_blocks
        return {block.label: block.value.partition("\n")[2] for block in files}

    for text in ("one", "two"):
        finished_file(client, folder.id, upload(file=("new.md", text.encode())).id)
        assert views() == {"inbox/old.md": "1: old", "inbox/new.md": f"1: {text}"}
    finished_file(client, folder.id, upload(file=("a.md", b"three"), name="a/b.md").id)
    assert views() == {"inbox/old.md": "", "inbox/new.md": "1: two", "inbox/a/b.md": "1: three"}
    client.agents.folders.detach(folder.id, agent_id=agent.id)
    assert views() == {}


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (lambda client, agent, folder: client.agents.folders.attach(folder, agent_id=f"agent-{'0' * 8}"), 422),
        (lambda client, agent, folder: client.agents.folders.attach(NOWHERE, agent_id=agent), 404),
        (lambda client, agent, folder: client.agents.folders.detach(NOWHERE, agent_id=agent), 404),
        (lambda client, agent, folder: client.agents.files.open(NO_FILE, agent_id=agent), 404),
        (lambda client, agent, folder: client.agents.create(model=MODEL, folder_ids=[NOWHERE]), 404),
        (lambda client, agent, folder: client.agents.create(model=MODEL, folder_ids=["x"]), 422),
    ],
)
def test_what_cannot_be_done_is_told(stack: Stack, call: Any, status: int) -> None:
    client = stack.client()
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS)
    folder = next(iter(client.folders.list()), None) or client.folders.create(name="any", embedding="loci/hash")
    with pytest.raises(APIStatusError) as error:
        call(client, agent.id, folder.id)
    assert error.value.status_code == status, error.value.body


NOWHERE = "source-11111111-1111-4111-8111-111111111111"
NO_FILE = "file-11111111-1111-4111-8111-111111111111"
