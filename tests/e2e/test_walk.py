"""The walk that must work, with the official Python client: an agent that remembers, through every service."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from letta_client import NotFoundError

from tests.e2e.helpers import BLOCKS, DICE, create, types
from tests.e2e.stack import Stack
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step


@pytest.mark.sandbox
def test_demo_model(own_stack: Stack) -> None:
    client = own_stack.client()
    archival = ["archival_memory_insert", "archival_memory_search"]
    agent = client.agents.create(memory_blocks=BLOCKS, model="loci/demo", tools=archival)
    names = {tool.name for tool in agent.tools}
    assert names == {"memory_insert", "memory_replace", "conversation_search", *archival}

    reply = client.agents.messages.create(agent.id, input="My name is Ada and I like Haskell.")
    assert reply.stop_reason.stop_reason == "end_turn"
    assert "tool_return_message" in types(reply.messages)
    human = client.agents.blocks.retrieve("human", agent_id=agent.id)
    assert "Ada" in human.value
    assert "Haskell" in human.value

    # Steps, then tokens.
    messages: list[Any] = [{"role": "user", "content": "What is my name?"}]
    steps = list(client.agents.messages.create(agent.id, messages=messages, streaming=True))
    assert types(steps)[0] == "ping"
    assert types(steps)[-2:] == ["stop_reason", "usage_statistics"]
    whole = [chunk for chunk in steps if chunk.message_type == "assistant_message"]
    assert len(whole) == 1
    tokens = list(client.agents.messages.create(agent.id, messages=messages, streaming=True, stream_tokens=True))
    deltas = [chunk for chunk in tokens if chunk.message_type == "assistant_message"]
    assert len(deltas) > 1
    assert "Ada" in "".join(delta.content for delta in deltas)
    assert len({delta.otid for delta in deltas}) == 1

    # Archival memory, by the agent and by the API.
    client.agents.messages.create(agent.id, input="Remember that the launch code word is heliotrope.")
    client.agents.passages.create(agent.id, text="Ada's first compiler was GHC 4.08.", tags=["history"])
    found = client.agents.passages.search(agent.id, query="Which compiler did Ada use first?")
    assert "GHC" in found.results[0].content
    recalled = client.agents.messages.create(agent.id, input="What do you know about the launch code word?")
    assert "heliotrope" in recalled.messages[-1].content

    # A custom tool, in a sandbox.
    tool = client.tools.upsert(source_code=DICE)
    assert tool.name == "roll_dice"
    client.agents.tools.attach(tool.id, agent_id=agent.id)
    rolled = client.agents.messages.create(agent.id, input="use roll_dice with num_sides=1")
    returns = [message for message in rolled.messages if message.message_type == "tool_return_message"]
    assert [(one.status, one.tool_return) for one in returns] == [("success", "rolled 1 of 1")]

    before = [(message.id, message.otid) for message in client.agents.messages.list(agent.id, limit=100)]
    assert len(before) == len(set(before))
    own_stack.stop()
    own_stack.start()
    assert [(message.id, message.otid) for message in client.agents.messages.list(agent.id, limit=100)] == before
    answer = client.agents.messages.create(agent.id, input="What is my name?")
    assert "Ada" in answer.messages[-1].content

    client.agents.delete(agent.id)
    with pytest.raises(NotFoundError, match="Agent not found"):
        client.agents.retrieve(agent.id)


@pytest.fixture(params=["openai", "anthropic"])
def model(request: pytest.FixtureRequest, openai_fake: OpenAIServer, anthropic_fake: AnthropicServer) -> Iterator[Any]:
    """A handle, the fake behind it."""
    if request.param == "openai":
        yield "openai/gpt-4o-mini", openai_fake
    else:
        yield "anthropic/claude-sonnet-4-6", anthropic_fake


def test_vendor_models(stack: Stack, model: tuple[str, OpenAIServer | AnthropicServer]) -> None:
    handle, fake = model
    client = stack.client()
    # Several calls at once are allowed where an agent asks for them.
    agent_id = create(client, handle, model_settings={"parallel_tool_calls": True})
    insert = ToolCall("memory_insert", {"label": "human", "new_string": "Name: Ada"})
    search = ToolCall("conversation_search", {"query": "Ada"})
    fake.rules(*by_step(Reply(text="Noting that.", calls=(insert,)), Reply(text="I will remember, Ada.")))
    reply = client.agents.messages.create(agent_id, input="My name is Ada.")
    assert types(reply.messages) == [
        "assistant_message",
        "tool_call_message",
        "tool_return_message",
        "assistant_message",
    ]
    assert client.agents.blocks.retrieve("human", agent_id=agent_id).value.endswith("Name: Ada")
    assert reply.usage.step_count == 2

    # The new block value is in the next turn's prompt, not within the turn that changed it.
    prompts = [_system(body) for body in fake.bodies() if body and "messages" in body]
    assert prompts[0] == prompts[1]
    fake.rules(*by_step(Reply(calls=(search, insert)), Reply(text="Both done.")))
    twice: list[Any] = [{"role": "user", "content": "Do it twice."}]
    chunks = list(client.agents.messages.create(agent_id, messages=twice, streaming=True, stream_tokens=True))
    assert "Name: Ada" in _system(fake.bodies()[-1])
    text = "".join(chunk.content for chunk in chunks if chunk.message_type == "assistant_message")
    assert text == "Both done."
    returned = [chunk for chunk in chunks if chunk.message_type == "tool_return_message"]
    assert [one.status for one in returned[0].tool_returns] == ["success", "success"]
    client.agents.delete(agent_id)


def _system(body: Any) -> str:
    if "system" in body:
        return str(body["system"])
    return str(body["messages"][0]["content"])


def test_lists(stack: Stack) -> None:
    client = stack.client()
    made = [create(client, "loci/demo", name=f"walker {number}", tags=["walk"]) for number in range(3)]
    page = client.agents.list(tags=["walk"], limit=2)
    listed = [agent.id for agent in page]
    assert sorted(listed) == sorted(made)
    assert "loci/demo" in {one.handle for one in client.models.list()}
    assert "loci/hash" in {one.handle for one in client.models.embeddings.list()}
    check: Callable[[str], object] = client.agents.delete
    for agent_id in made:
        check(agent_id)
