"""Time travel end to end: with the official client as far as it knows it, with plain HTTP for Loci's own routes."""

from typing import Any

import httpx
import pytest
from letta_client import NotFoundError

from tests.e2e.stack import Stack

NOTHING = "Nothing is known yet."
BLOCKS: list[Any] = [{"label": "human", "value": NOTHING}, {"label": "persona", "value": "I am a helpful agent."}]


def get(stack: Stack, path: str, **params: Any) -> Any:
    """The answer of one of Loci's own routes."""
    response = httpx.get(f"{stack.url}/v1{path}", params=params, timeout=30)
    assert response.status_code == 200, response.text
    return response.json()


def post(stack: Stack, path: str, body: Any = None, **params: Any) -> httpx.Response:
    """The response of one."""
    return httpx.post(f"{stack.url}/v1{path}", json=body, params=params, timeout=30)


def done(response: httpx.Response) -> Any:
    """Returns the answer of a call that succeeded."""
    assert response.status_code == 200, response.text
    return response.json()


def said(messages: Any) -> list[str]:
    """Returns the user's messages, oldest first."""
    return [each.content for each in messages if each.message_type == "user_message"]


def after(stack: Stack, agent_id: str, label: str) -> str:
    """The checkpoint after the run that was told so."""
    found = get(stack, f"/agents/{agent_id}/checkpoints")
    chosen: str = next(each["id"] for each in found if each["kind"] == "run" and each["label"] == label)
    return chosen


def test_back_and_on_from_there(stack: Stack) -> None:
    client = stack.client()
    agent = client.agents.create(memory_blocks=BLOCKS, model="loci/demo", name="Traveller")
    things = ("My name is Ada.", "I like Haskell.", "I like Prolog.")

    def human(agent_id: str = agent.id) -> str:
        value: str = client.agents.blocks.retrieve("human", agent_id=agent_id).value
        return value

    values = []
    for thing in things:
        client.agents.messages.create(agent.id, input=thing)
        values.append(human())
    assert len(set(values)) == 3

    checkpoints = get(stack, "/conversations/default/checkpoints", agent_id=agent.id)
    assert checkpoints == get(stack, f"/agents/{agent.id}/checkpoints")
    assert [each["kind"] for each in checkpoints] == ["run", "step", "input"] * 3
    assert [each["label"] for each in checkpoints if each["kind"] == "run"] == [*reversed(things)]
    assert get(stack, f"/agents/{agent.id}/checkpoints", after=checkpoints[0]["id"], limit=2) == checkpoints[1:3]

    # Back to the second turn.
    rewind = done(post(stack, f"/agents/{agent.id}/rewind", {"checkpoint_id": after(stack, agent.id, things[1])}))
    assert (rewind["left_checkpoint_id"], {each["outcome"] for each in rewind["blocks"]}) == (
        checkpoints[0]["id"], {"restored"},
    )  # fmt: skip
    assert {(each["label"], each["scope"]) for each in rewind["blocks"]} == {("human", "agent"), ("persona", "agent")}
    assert human() == values[1]
    assert said(client.agents.messages.list(agent.id, order="asc")) == [*things[:2]]
    liked = client.agents.messages.create(agent.id, input="What do I like?").messages[-1].content
    assert "Haskell" in liked
    assert "Prolog" not in liked
    assert get(stack, f"/agents/{agent.id}/rewinds") == [rewind]

    # A new agent out of the first turn goes its own way, and needs the other no more.
    fork = done(post(stack, f"/agents/{agent.id}/fork", {"checkpoint_id": after(stack, agent.id, things[0])}))
    twin = fork["agent"]["id"]
    assert fork["agent"]["name"] == "Traveller (fork)"
    assert len(fork["copied"]["block_ids"]) == 2
    assert {"archive_ids", "folder_ids", "tool_ids", "until_message_id"} == fork["shared"].keys()
    assert sorted(fork["shared"]["tool_ids"]) == sorted(tool.id for tool in agent.tools)
    assert human(twin) == values[0]
    client.agents.messages.create(twin, input="I like tea.")
    assert "tea" in human(twin)
    assert human() == values[1]
    client.agents.delete(agent.id)
    with pytest.raises(NotFoundError):
        client.agents.retrieve(agent.id)
    assert "Ada" in client.agents.messages.create(twin, input="What is my name?").messages[-1].content
    told = said(client.agents.messages.list(twin, order="asc", limit=100))
    assert told == [things[0], "I like tea.", "What is my name?"]
    client.agents.delete(twin)


def test_conversations(stack: Stack) -> None:
    client = stack.client()
    agent = client.agents.create(memory_blocks=BLOCKS, model="loci/demo")
    talk = client.conversations.create(agent_id=agent.id, extra_body={"isolated_block_labels": ["human"]})
    for thing in ("My name is Ada.", "My name is Grace."):
        list(client.conversations.messages.create(talk.id, messages=[{"role": "user", "content": thing}]))
    checkpoints = get(stack, f"/conversations/{talk.id}/checkpoints")
    first = next(each["id"] for each in checkpoints if each["kind"] == "run" and "Ada" in each["label"])

    # Three ways to go on: in a fork, in the conversation itself, in a new agent.
    fork = done(post(stack, f"/conversations/{talk.id}/fork", checkpoint_id=first, isolate_blocks=True))
    assert len(fork["isolated_block_ids"]) == 2
    values = {client.blocks.retrieve(each).value for each in fork["isolated_block_ids"]}
    assert any("Ada" in value for value in values)
    rewind = done(post(stack, f"/conversations/{talk.id}/rewind", {"checkpoint_id": first}))
    assert {(each["label"], each["outcome"], each["scope"]) for each in rewind["blocks"]} == {
        ("human", "restored", "conversation"), ("persona", "left", "agent"),
    }  # fmt: skip
    assert said(client.conversations.messages.list(talk.id, order="asc")) == ["My name is Ada."]
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == NOTHING
    body = {"checkpoint_id": rewind["left_checkpoint_id"], "name": "Grace's"}
    twin = done(post(stack, f"/conversations/{talk.id}/fork-agent", body))["agent"]
    assert twin["name"] == "Grace's"
    assert "Grace" in client.agents.messages.create(twin["id"], input="What is my name?").messages[-1].content
    assert get(stack, f"/conversations/{talk.id}/rewinds") == [rewind]
    for agent_id in (agent.id, twin["id"]):
        client.agents.delete(agent_id)


def test_what_is_wrong_is_said(stack: Stack) -> None:
    client = stack.client()
    agent = client.agents.create(memory_blocks=BLOCKS, model="loci/demo")
    unknown = "run-00000000-0000-4000-8000-000000000000"
    for path, body, status in (
        (f"/agents/{agent.id}/rewind", {"checkpoint_id": unknown}, 404),
        (f"/agents/{agent.id}/fork", {"checkpoint_id": unknown}, 404),
        (f"/agents/{agent.id}/rewind", {"checkpoint_id": "block-1"}, 422),
        (f"/agents/{agent.id}/rewind", {}, 422),
        ("/conversations/default/rewind", {"checkpoint_id": unknown}, 404),
    ):
        response = post(stack, path, body)
        assert (response.status_code, "detail" in response.json()) == (status, True), response.text
    assert post(stack, f"/conversations/{agent.id}/fork", checkpoint_id="x").status_code == 422
    assert get(stack, f"/agents/{agent.id}/checkpoints") == []
    client.agents.delete(agent.id)
