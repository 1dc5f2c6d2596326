"""Agents that write to agents, with the official client through every service."""

from typing import Any

import pytest

from tests.e2e.guides import follow
from tests.e2e.helpers import create, finished_run
from tests.e2e.stack import Stack
from tests.e2e.test_kill import killed_during
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule, ToolCall
from tests.polling import wait_until

ASK = "send_message_to_agent_and_wait_for_reply"
TELL = "send_message_to_agent_async"
ASK_TAGGED = "send_message_to_agents_matching_tags"
MODEL = "openai/gpt-4o-mini"
SERVICES = ["agent", "llm_gateway", "memory", "gateway"]
QUESTION: list[Any] = [{"role": "user", "content": "Find out the colour."}]


def asking(openai_fake: OpenAIServer, call: ToolCall, *, reply: Reply | None = None) -> None:
    """Who is asked for the colour by a person makes the call; who is asked by an agent says it."""
    openai_fake.rules(
        Rule(reply or Reply(text="It is blue."), contains="Message from another agent", step=0),
        Rule(Reply(calls=(call,)), contains="Find out", step=0),
        Rule(Reply(text="They say: blue."), contains="Find out", step=1),
    )


def said_to(client: Any, agent_id: str) -> list[str]:
    """What an agent was told, oldest first."""
    messages = client.agents.messages.list(agent_id, order="asc", limit=100)
    return [each.content for each in messages if each.message_type == "user_message"]


def returned(reply: Any) -> Any:
    """The only return."""
    (only,) = [each for each in reply.messages if each.message_type == "tool_return_message"]
    return only


def test_an_agent_asks_another_and_gets_its_reply(client: Any, openai_fake: OpenAIServer) -> None:
    other = create(client, MODEL)
    first = create(client, MODEL, tools=[ASK])
    asking(openai_fake, ToolCall(ASK, {"message": "Which colour?", "other_agent_id": other}))
    reply = client.agents.messages.create(first, messages=QUESTION)
    assert returned(reply).tool_return == "It is blue."
    assert reply.messages[-1].content == "They say: blue."
    (told,) = said_to(client, other)
    assert first in told
    assert told.endswith("Which colour?")
    (run,) = client.runs.list(agent_id=other)
    assert run.status == "completed"


def test_an_agent_tells_another_something_and_goes_on(client: Any, openai_fake: OpenAIServer) -> None:
    other = create(client, MODEL)
    first = create(client, MODEL, tools=[TELL])
    asking(openai_fake, ToolCall(TELL, {"message": "It is late.", "other_agent_id": other}))
    reply = client.agents.messages.create(first, messages=QUESTION)
    assert "The message was sent" in returned(reply).tool_return
    (run,) = wait_until(lambda: list(client.runs.list(agent_id=other)))
    assert finished_run(client, run.id).background
    assert said_to(client, other)[0].endswith("It is late.")


def test_all_agents_with_a_tag_are_asked(client: Any, openai_fake: OpenAIServer) -> None:
    others = [create(client, MODEL, tags=["painter"], name=f"painter {number}") for number in range(2)]
    first = create(client, MODEL, tools=[ASK_TAGGED], tags=["painter"])
    wanted = {"message": "Which colour?", "match_all": ["painter"], "match_some": []}
    asking(openai_fake, ToolCall(ASK_TAGGED, wanted))
    reply = client.agents.messages.create(first, messages=QUESTION)
    assert all(each in returned(reply).tool_return for each in (*others, "It is blue.", "painter 1"))
    for agent_id in others:
        client.agents.delete(agent_id)


def test_a_key_for_one_agent_reaches_no_other_through_it(stack: Stack, client: Any, openai_fake: OpenAIServer) -> None:
    other = create(client, MODEL)
    first = create(client, MODEL, tools=[ASK])
    key = {"name": "page", "role": "agent-only", "agent_ids": [first]}
    made: Any = client.post("/v1/api-keys/", body=key, cast_to=object)
    limited = stack.client(api_key=made["key"])
    asking(openai_fake, ToolCall(ASK, {"message": "Which colour?", "other_agent_id": other}))
    refused = returned(limited.agents.messages.create(first, messages=QUESTION))
    assert refused.status == "error"
    assert f"may not write to {other}" in refused.tool_return
    assert list(client.runs.list(agent_id=other)) == []


def test_the_tools_come_with_an_agent_that_wants_them(client: Any) -> None:
    agent = client.agents.create(model=MODEL, extra_body={"include_multi_agent_tools": True})
    names = {tool.name for tool in client.agents.tools.list(agent.id)}
    assert {ASK, TELL, ASK_TAGGED} <= names
    (tool,) = client.tools.list(name=ASK)
    assert (tool.tool_type, tool.tags) == ("letta_multi_agent_core", ["letta_multi_agent_core"])


@pytest.mark.parametrize("service", SERVICES)
def test_killed_while_an_agent_waits_for_another(own_stack: Stack, openai_fake: OpenAIServer, service: str) -> None:
    client = own_stack.client(timeout=60, max_retries=2)
    other = create(client, MODEL)
    first = create(client, MODEL, tools=[ASK])
    thinks = openai_fake.gate()
    call = ToolCall(ASK, {"message": "Which colour?", "other_agent_id": other})
    asking(openai_fake, call, reply=Reply(text="It is blue.", gate=thinks))
    with killed_during(own_stack, service, lambda: thinks.is_reached, thinks.open):
        run = client.agents.messages.create_async(first, messages=QUESTION)
    own_stack.wait_healthy()
    assert finished_run(client, run.id).status == "completed"
    messages = client.agents.messages.list(first, order="asc", limit=100)
    assert [each.tool_return for each in messages if each.message_type == "tool_return_message"] == ["It is blue."]
    assert len(said_to(client, other)) == 1
    assert [each.status for each in client.runs.list(agent_id=other)] == ["completed"]


def test_the_page(stack: Stack, openai_fake: OpenAIServer, capsys: pytest.CaptureFixture[str]) -> None:
    openai_fake.rules(
        Rule(Reply(text="It is."), contains="Your view?"),
        Rule(Reply(calls=(ToolCall("ask_members", {"message": "Your view?"}),)), contains="Is it blue?", step=0),
        Rule(Reply(text="Both say it is."), contains="Is it blue?", step=1),
    )
    outputs = ["end_turn", r"\['run-", r"\[\('boss', 'Both say it is\.'\)\]"]
    follow("groups.md", outputs, capsys, {"http://localhost:8283": stack.url, "loci/demo": MODEL})


def frequency(client: Any, group_id: str, turns: int) -> None:
    """Sets how many turns of its manager a group lets pass."""
    body = {"manager_config": {"manager_type": "sleeptime", "sleeptime_agent_frequency": turns}}
    client.patch(f"/v1/groups/{group_id}", body=body, cast_to=object)


def test_a_companion_writes_what_was_said_into_the_blocks_that_both_share(
    client: Any, openai_fake: OpenAIServer
) -> None:
    agent = client.agents.create(
        model=MODEL,
        embedding="loci/hash",
        enable_sleeptime=True,
        memory_blocks=[{"label": "human", "value": "Nothing is known yet."}],
    )
    frequency(client, agent.managed_group.id, 2)
    (companion,) = agent.managed_group.agent_ids
    note = ToolCall(
        "memory_replace", {"label": "human", "old_string": "Nothing is known yet.", "new_string": "Is Ada."}
    )
    openai_fake.rules(
        Rule(Reply(calls=(note,)), contains="whose memory you tend", step=0),
        Rule(Reply(calls=(ToolCall("memory_finish_edits"),)), contains="whose memory you tend", step=1),
        Rule(Reply(text="Hello, Ada."), contains="I am Ada."),
        Rule(Reply(text="Fine."), contains="How are you?"),
    )
    first = client.agents.messages.create(agent.id, messages=[{"role": "user", "content": "I am Ada."}])
    assert first.usage.run_ids is None
    second = client.agents.messages.create(agent.id, messages=[{"role": "user", "content": "How are you?"}])
    (run_id,) = second.usage.run_ids
    run = finished_run(client, run_id)
    assert (run.status, run.agent_id, run.background) == ("completed", companion, True)
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "Is Ada."
    (told,) = said_to(client, companion)
    assert "I am Ada." in told
    assert "Hello, Ada." in told


def test_a_stream_names_the_runs_of_the_companion(client: Any, openai_fake: OpenAIServer) -> None:
    agent = client.agents.create(model=MODEL, embedding="loci/hash", enable_sleeptime=True)
    frequency(client, agent.managed_group.id, 1)
    chunks = list(client.agents.messages.create(agent.id, messages=QUESTION, streaming=True))
    (usage,) = [chunk for chunk in chunks if chunk.message_type == "usage_statistics"]
    assert [finished_run(client, run_id).status for run_id in usage.run_ids] == ["completed"]


@pytest.mark.parametrize("service", SERVICES)
def test_killed_while_the_companion_thinks(own_stack: Stack, openai_fake: OpenAIServer, service: str) -> None:
    client = own_stack.client(timeout=60, max_retries=2)
    blocks = [{"label": "human", "value": "Nothing."}]
    settings: dict[str, Any] = {"embedding": "loci/hash", "enable_sleeptime": True, "memory_blocks": blocks}
    agent = client.agents.create(model=MODEL, **settings)
    frequency(client, agent.managed_group.id, 1)
    thinks = openai_fake.gate()
    note = ToolCall("memory_replace", {"label": "human", "old_string": "Nothing.", "new_string": "Is Ada."})
    openai_fake.rules(
        Rule(Reply(calls=(note,), gate=thinks), contains="whose memory you tend", step=0),
        Rule(Reply(calls=(ToolCall("memory_finish_edits"),)), contains="whose memory you tend", step=1),
        Rule(Reply(text="Hello, Ada."), contains="I am Ada."),
    )
    with killed_during(own_stack, service, lambda: thinks.is_reached, thinks.open):
        answer = client.agents.messages.create(agent.id, messages=[{"role": "user", "content": "I am Ada."}])
    own_stack.wait_healthy()
    (run_id,) = answer.usage.run_ids
    assert finished_run(client, run_id).status == "completed"
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "Is Ada."
    (companion,) = agent.managed_group.agent_ids
    assert len(list(client.runs.list(agent_id=companion))) == 1
