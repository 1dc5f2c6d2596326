"""Groups that speak, over every way in and through every service."""

import asyncio
import json
from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import uuid4

import grpc
import httpx
import pytest
from letta_client import APIStatusError, PermissionDeniedError
from websockets.asyncio.client import connect

from loci.agent.v1 import message_pb2, message_service_pb2, message_service_pb2_grpc
from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.e2e.test_kill import killed_during
from tests.e2e.test_many_agents import MODEL, SERVICES
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule, ToolCall


def group_of(client: Any, kind: str, *names: str, **config: Any) -> tuple[str, dict[str, str]]:
    """A group of agents with these names, and their ids; the first leads it where one does."""
    ids = {name: create(client, MODEL, name=name) for name in names}
    members = list(ids.values())
    if kind in ("supervisor", "dynamic"):
        config["manager_agent_id"] = members.pop(0)
    body = {"agent_ids": members, "description": "Many.", "manager_config": {"manager_type": kind, **config}}
    group: Any = client.post("/v1/groups/", body=body, cast_to=object)
    return group["id"], ids


def spoken(answer: Any) -> list[tuple[str, str]]:
    """Who said what."""
    return [(each["name"], each["content"]) for each in answer["messages"]]


def test_a_round_of_a_group(client: Any, openai_fake: OpenAIServer) -> None:
    group_id, ids = group_of(client, "round_robin", "ada", "bob")
    path = f"/v1/groups/{group_id}/messages"
    assert client.get(path, cast_to=object) == []
    openai_fake.rules(
        Rule(Reply(text="I agree."), contains="[ada] It is blue."),
        Rule(Reply(text="It is blue."), contains="Which colour?"),
    )
    answer: Any = client.post(path, body={"input": "Which colour?"}, cast_to=object)
    assert spoken(answer) == [("ada", "It is blue."), ("bob", "I agree.")]
    assert [each["sender_id"] for each in answer["messages"]] == [ids["ada"], ids["bob"]]
    assert answer["usage"]["step_count"] == 2
    listed: Any = client.get(path, cast_to=object, options={"params": {"order": "asc"}})
    kinds = [(each["message_type"], each.get("content")) for each in listed if each["message_type"] != "system_message"]
    assert kinds == [
        ("user_message", "Which colour?"),
        ("assistant_message", "It is blue."),
        ("assistant_message", "I agree."),
    ]
    # The agent that stands for it is in no list.
    assert group_id.replace("group-", "agent-") not in [agent.id for agent in client.agents.list(limit=100)]
    assert client.patch(f"/v1/groups/{group_id}/reset-messages", cast_to=object) is None
    again: Any = client.get(path, cast_to=object)
    assert [each for each in again if each["message_type"] != "system_message"] == []


def chunks(stack: Stack, group_id: str, **body: Any) -> list[dict[str, Any]]:
    """The events of a round."""
    url = f"{stack.url}/v1/groups/{group_id}/messages/stream"
    with httpx.stream("POST", url, json={"input": "Hello.", **body}, timeout=60) as response:
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


def heard(events: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Who said what, in pieces or not."""
    said = [each for each in events if each.get("message_type") == "assistant_message"]
    return [(name, "".join(each["content"] for each in group)) for name, group in groupby(said, itemgetter("name"))]


@pytest.mark.parametrize("tokens", [True, False])
def test_a_round_as_a_stream(stack: Stack, client: Any, openai_fake: OpenAIServer, tokens: bool) -> None:
    group_id, ids = group_of(client, "round_robin", "ada", "bob")
    openai_fake.rules(
        Rule(Reply(text="So say I, too."), contains="[ada]"),
        Rule(Reply(text="It is as blue as can be."), contains="Hello."),
    )
    events = chunks(stack, group_id, stream_tokens=tokens)
    assert heard(events) == [("ada", "It is as blue as can be."), ("bob", "So say I, too.")]
    pieces = [each for each in events if each["message_type"] == "assistant_message"]
    assert (len(pieces) > 2) == tokens
    assert {each["sender_id"] for each in pieces} == set(ids.values())
    assert [each["message_type"] for each in events[-2:]] == ["stop_reason", "usage_statistics"]


async def test_a_round_over_a_socket(stack: Stack, openai_fake: OpenAIServer) -> None:
    group_id, _ = group_of(stack.client(), "round_robin", "ada", "bob")
    openai_fake.rules(Rule(Reply(text="I agree."), contains="[ada]"), Rule(Reply(text="Blue."), contains="Hello."))
    url = f"{stack.url.replace('http', 'ws')}/v1/groups/{group_id}/ws"
    async with asyncio.timeout(60), connect(url) as talk:
        await talk.send(json.dumps({"type": "send", "id": "1", "input": "Hello.", "stream_tokens": True}))
        frames = [json.loads(await talk.recv())]
        while frames[-1].get("type") != "end":
            frames.append(json.loads(await talk.recv()))
    assert (frames[0]["type"], frames[-1]["stop_reason"]) == ("accepted", "end_turn")
    assert heard(frames) == [("ada", "Blue."), ("bob", "I agree.")]


def test_a_round_over_grpc(stack: Stack, client: Any, openai_fake: OpenAIServer) -> None:
    group_id, _ = group_of(client, "round_robin", "ada", "bob")
    openai_fake.rules(Rule(Reply(text="I agree."), contains="[ada]"), Rule(Reply(text="Blue."), contains="Hello."))
    said = message_pb2.InputMessage(
        role=message_pb2.MESSAGE_ROLE_USER, content=[message_pb2.ContentPart(text="Hello.")]
    )
    turn = message_service_pb2.TurnRequest(agent_id=group_id, messages=[said])
    with grpc.insecure_channel(f"127.0.0.1:{stack.grpc_port}") as channel:
        service = message_service_pb2_grpc.MessageServiceStub(channel)
        answer = service.SendMessages(message_service_pb2.SendMessagesRequest(turn=turn), timeout=60)
    assert [(each.name, each.assistant_message.content) for each in answer.messages] == [
        ("ada", "Blue."),
        ("bob", "I agree."),
    ]


def test_a_supervisor_with_two_workers(client: Any, openai_fake: OpenAIServer) -> None:
    group_id, _ = group_of(client, "supervisor", "boss", "ada", "bob")
    asks = ToolCall("ask_members", {"message": "Your view?"})
    openai_fake.rules(
        Rule(Reply(text="Fine with me."), contains="Your view?", step=0),
        Rule(Reply(calls=(asks,)), contains="Decide.", step=0),
        Rule(Reply(text="All are for it."), contains="Decide.", step=1),
    )
    answer: Any = client.post(f"/v1/groups/{group_id}/messages", body={"input": "Decide."}, cast_to=object)
    assert spoken(answer) == [("boss", "All are for it.")]


def test_groups_that_cannot_speak_say_so(client: Any) -> None:
    group_id, ids = group_of(client, "round_robin", "ada")
    client.agents.delete(ids["ada"])
    with pytest.raises(APIStatusError, match="no members") as caught:
        client.post(f"/v1/groups/{group_id}/messages", body={"input": "Hello."}, cast_to=object)
    assert caught.value.status_code == 409
    boss = create(client, MODEL)
    config = {"manager_type": "supervisor", "manager_agent_id": boss}
    body = {"agent_ids": [boss], "description": "Many.", "manager_config": config}
    both: Any = client.post("/v1/groups/", body=body, cast_to=object)
    with pytest.raises(APIStatusError, match="also one of its members") as caught:
        client.post(f"/v1/groups/{both['id']}/messages", body={"input": "Hello."}, cast_to=object)
    assert caught.value.status_code == 409


def test_what_is_about_one_agent_is_no_part_of_a_round(client: Any) -> None:
    group_id, ids = group_of(client, "round_robin", "ada")
    path = f"/v1/groups/{group_id}/messages"
    for name, value in (
        ("client_tools", [{"name": "ls"}]),
        ("override_model", MODEL),
        ("override_system", "Be brief."),
    ):
        with pytest.raises(APIStatusError, match=f"takes no {name}; set it on the group") as caught:
            client.post(path, body={"input": "Hello.", name: value}, cast_to=object)
        assert caught.value.status_code == 422
    assert list(client.runs.list(agent_id=ids["ada"])) == []


def test_a_group_has_at_most_a_thousand_members(client: Any) -> None:
    body = {"agent_ids": [f"agent-{uuid4()}" for _ in range(1_001)], "description": "A crowd."}
    with pytest.raises(APIStatusError, match=r"at most 1,?000") as caught:
        client.post("/v1/groups/", body=body, cast_to=object)
    assert caught.value.status_code == 422


def test_a_key_for_some_agents_has_no_group(stack: Stack, client: Any) -> None:
    group_id, ids = group_of(client, "round_robin", "ada")
    key = {"name": "page", "role": "agent-only", "agent_ids": [ids["ada"]]}
    made: Any = client.post("/v1/api-keys/", body=key, cast_to=object)
    limited = stack.client(api_key=made["key"])
    with pytest.raises(PermissionDeniedError):
        limited.post(f"/v1/groups/{group_id}/messages", body={"input": "Hello."}, cast_to=object)


def test_a_manager_leads_a_dynamic_group(client: Any, openai_fake: OpenAIServer) -> None:
    group_id, _ = group_of(client, "dynamic", "boss", "ada", "bob")
    openai_fake.rules(
        Rule(Reply(text="DONE!"), contains="[bob] It is blue."),
        Rule(Reply(text="It is blue."), contains="[user] Which colour?\n\n[boss] Bob knows."),
        Rule(Reply(text="Bob knows.", calls=(ToolCall("choose_next_speaker", {"name": "bob"}),)), contains="Which"),
    )
    answer: Any = client.post(f"/v1/groups/{group_id}/messages", body={"input": "Which colour?"}, cast_to=object)
    assert spoken(answer) == [("boss", "Bob knows."), ("bob", "It is blue."), ("boss", "DONE!")]
    assert answer["stop_reason"]["stop_reason"] == "end_turn"


def test_a_swarm_keeps_who_has_the_floor(client: Any, openai_fake: OpenAIServer) -> None:
    group_id, ids = group_of(client, "swarm", "ada", "bob")
    openai_fake.rules(
        Rule(Reply(text="Still me."), contains="And now?"),
        Rule(Reply(text="Bob here."), contains="[ada] Bob knows."),
        Rule(Reply(text="Bob knows.", calls=(ToolCall("hand_over", {"name": "bob"}),)), contains="Which colour?"),
    )
    path = f"/v1/groups/{group_id}/messages"
    first: Any = client.post(path, body={"input": "Which colour?"}, cast_to=object)
    assert spoken(first) == [("ada", "Bob knows."), ("bob", "Bob here.")]
    second: Any = client.post(path, body={"input": "And now?"}, cast_to=object)
    assert spoken(second) == [("bob", "Still me.")]
    assert len(list(client.runs.list(agent_id=ids["ada"]))) == 1


def test_a_person_approves_in_the_middle_of_a_round(client: Any, openai_fake: OpenAIServer) -> None:
    group_id, ids = group_of(client, "round_robin", "ada", "bob")
    rules = [{"type": "requires_approval", "tool_name": "memory_insert"}]
    client.agents.update(ids["ada"], tool_rules=rules)
    note = ToolCall("memory_insert", {"label": "human", "new_string": "Likes blue."}, id="call_note")
    openai_fake.rules(
        Rule(Reply(text="I agree."), contains="[ada]", step=0),
        Rule(Reply(calls=(note,)), contains="I like blue.", step=0),
        Rule(Reply(text="It is noted."), contains="I like blue.", step=1),
    )
    path = f"/v1/groups/{group_id}/messages"
    first: Any = client.post(path, body={"input": "I like blue."}, cast_to=object)
    (asked,) = first["messages"]
    assert (asked["message_type"], asked["name"], asked["sender_id"]) == ("approval_request_message", "ada", ids["ada"])
    assert first["stop_reason"]["stop_reason"] == "requires_approval"
    with pytest.raises(APIStatusError, match="waiting for approval") as caught:
        client.post(path, body={"input": "And?"}, cast_to=object)
    assert caught.value.status_code == 409
    approval = {"type": "approval", "tool_call_id": "call_note", "approve": True}
    body = {"messages": [{"type": "approval", "approvals": [approval]}]}
    second: Any = client.post(path, body=body, cast_to=object)
    assert spoken(second) == [("ada", "It is noted."), ("bob", "I agree.")]
    assert "Likes blue." in client.agents.blocks.retrieve("human", agent_id=ids["ada"]).value


@pytest.mark.parametrize("service", SERVICES)
def test_killed_in_the_middle_of_a_round(own_stack: Stack, openai_fake: OpenAIServer, service: str) -> None:
    client = own_stack.client(timeout=60, max_retries=2)
    group_id, ids = group_of(client, "round_robin", "ada", "bob", "eve")
    thinks = openai_fake.gate()
    openai_fake.rules(
        Rule(Reply(text="E"), contains="[bob] B"),
        Rule(Reply(text="B", gate=thinks), contains="[ada] A"),
        Rule(Reply(text="A"), contains="Speak."),
    )
    with killed_during(own_stack, service, lambda: thinks.is_reached, thinks.open):
        answer: Any = client.post(f"/v1/groups/{group_id}/messages", body={"input": "Speak."}, cast_to=object)
    own_stack.wait_healthy()
    assert spoken(answer) == [("ada", "A"), ("bob", "B"), ("eve", "E")]
    assert all(len(list(client.runs.list(agent_id=agent_id))) == 1 for agent_id in ids.values())
