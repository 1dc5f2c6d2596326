"""Calls that wait for a person or for the client, through the official client and every service."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from letta_client import APIStatusError, BadRequestError, ConflictError

from tests.e2e.database import wait_in_line
from tests.e2e.helpers import create, types
from tests.e2e.stack import Stack
from tests.e2e.test_kill import SLOW, killed_during
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.polling import wait_until

MODEL = "openai/gpt-4o-mini"
INSERT: dict[str, Any] = {"type": "requires_approval", "tool_name": "memory_insert"}
LS: dict[str, Any] = {
    "name": "ls",
    "description": "Lists a folder.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def note(text: str, call_id: str = "") -> ToolCall:
    """A call that writes to the agent's memory, which can be seen."""
    return ToolCall("memory_insert", {"label": "human", "new_string": text}, call_id)


def human(client: Any, agent_id: str) -> str:
    """Returns the block about the user."""
    value: str = client.agents.blocks.retrieve("human", agent_id=agent_id).value
    return value


def asked_for(messages: Any) -> Any:
    """The request for approval among messages."""
    [request] = [message for message in messages if message.message_type == "approval_request_message"]
    return request


def answer(*call_ids: str, approve: bool = True, reason: str | None = None) -> Any:
    """A decision about calls."""
    given = [{"type": "approval", "tool_call_id": one, "approve": approve, "reason": reason} for one in call_ids]
    return {"type": "approval", "approvals": given}


@pytest.fixture
def ask(stack: Stack, openai_fake: OpenAIServer) -> Callable[..., tuple[Any, str, Any]]:
    """Makes an agent whose calls wait: the client, the agent's id and the request for approval."""

    def asking(*calls: ToolCall, rule: dict[str, Any] = INSERT) -> tuple[Any, str, Any]:
        client = stack.client()
        agent_id = create(client, MODEL, tool_rules=[rule], parallel_tool_calls=True)
        openai_fake.reply(Reply(text="May I?", calls=calls or (note("Name: Ada"),)))
        reply = client.agents.messages.create(agent_id, input="I am Ada.")
        assert reply.stop_reason.stop_reason == "requires_approval"
        assert types(reply.messages) == ["assistant_message", "approval_request_message"]
        assert "Ada" not in human(client, agent_id)
        return client, agent_id, asked_for(reply.messages)

    return asking


def test_what_is_approved_runs_and_is_told(ask: Callable[..., Any], openai_fake: OpenAIServer) -> None:
    client, agent_id, request = ask()
    openai_fake.reply(Reply(text="Noted."))
    reply = client.agents.messages.create(agent_id, messages=[answer(request.tool_call.tool_call_id)])
    assert types(reply.messages) == ["tool_return_message", "assistant_message"]
    assert reply.messages[0].step_id == request.step_id
    assert human(client, agent_id).endswith("Name: Ada")
    listed = client.agents.messages.list(agent_id, order="asc", limit=100).items
    assert types(listed)[1:] == [
        *("user_message", "assistant_message", "approval_request_message", "approval_response_message"),
        *("tool_return_message", "assistant_message"),
    ]
    assert listed[3].id == request.id
    [given] = listed[4].approvals
    assert (given.tool_call_id, given.approve) == (request.tool_call.tool_call_id, True)


def test_what_is_denied_does_not_run_and_the_model_is_told_why(
    ask: Callable[..., Any], openai_fake: OpenAIServer
) -> None:
    client, agent_id, request = ask()
    openai_fake.reply(Reply(text="Then not."))
    denied = answer(request.tool_call.tool_call_id, approve=False, reason="that is private")
    chunks = list(client.agents.messages.create(agent_id, messages=[denied], streaming=True))
    [returned] = [chunk for chunk in chunks if chunk.message_type == "tool_return_message"]
    assert (returned.status, "that is private" in returned.tool_return) == ("error", True)
    assert "that is private" in str(openai_fake.bodies()[-1])
    assert "Ada" not in human(client, agent_id)
    # The form of older clients.
    openai_fake.reply(Reply(calls=(note("Name: Ada"),)), Reply(text="Noted."))
    request = asked_for(client.agents.messages.create(agent_id, input="You may.").messages)
    older: Any = {"type": "approval", "approve": True, "approval_request_id": request.id}
    assert client.agents.messages.create(agent_id, messages=[older]).stop_reason.stop_reason == "end_turn"
    assert human(client, agent_id).endswith("Name: Ada")


def test_an_older_client_that_repeats_its_answer_does_not_approve_the_next_call(
    ask: Callable[..., Any], openai_fake: OpenAIServer
) -> None:
    client, agent_id, request = ask()
    older: Any = {"type": "approval", "approve": True, "approval_request_id": request.id}
    openai_fake.reply(Reply(calls=(note("Likes: Haskell"),)))
    first = client.agents.messages.create(agent_id, messages=[older])
    another = asked_for(first.messages)
    with pytest.raises(BadRequestError, match="Invalid tool call IDs"):
        client.agents.messages.create(agent_id, messages=[older])
    assert "Haskell" not in human(client, agent_id)
    openai_fake.reply(Reply(text="Noted."))
    client.agents.messages.create(agent_id, messages=[older | {"approval_request_id": another.id}])
    assert human(client, agent_id).endswith("Likes: Haskell")
    listed = client.agents.messages.list(agent_id, order="asc", limit=100).items
    responses = [one for one in listed if one.message_type == "approval_response_message"]
    assert [one.approval_request_id for one in responses] == [request.id, another.id]


def test_streams_show_requests_and_end(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent_id = create(client, MODEL, tool_rules=[INSERT], parallel_tool_calls=True)
    search = ToolCall("conversation_search", {"query": "Ada"}, "call_free")
    openai_fake.reply(Reply(calls=(search, note("Name: Ada", "call_gated"))), Reply(text="Both done."))
    messages: list[Any] = [{"role": "user", "content": "I am Ada."}]
    chunks = list(client.agents.messages.create(agent_id, messages=messages, streaming=True, stream_tokens=True))
    assert [chunk.stop_reason for chunk in chunks if chunk.message_type == "stop_reason"] == ["requires_approval"]
    deltas = [chunk for chunk in chunks if chunk.message_type == "approval_request_message"]
    assert {chunk.tool_call.tool_call_id for chunk in deltas} == {"call_gated"}
    assert "tool_return_message" not in types(chunks)
    go: list[Any] = [answer("call_gated")]
    chunks = list(client.agents.messages.create(agent_id, messages=go, streaming=True, stream_tokens=True))
    returned = [one for chunk in chunks if chunk.message_type == "tool_return_message" for one in chunk.tool_returns]
    assert [(one.tool_call_id, one.status) for one in returned] == [("call_gated", "success"), ("call_free", "success")]


def test_nothing_else_can_be_said_meanwhile(ask: Callable[..., Any], openai_fake: OpenAIServer) -> None:
    client, agent_id, request = ask()
    with pytest.raises(ConflictError) as refused:
        client.agents.messages.create(agent_id, input="Hello?")
    body: Any = refused.value.body
    assert {name: body["detail"][name] for name in ("code", "pending_request_id")} == {
        "code": "PENDING_APPROVAL",
        "pending_request_id": request.id,
    }
    with pytest.raises(APIStatusError, match="waiting for approval"):
        list(client.agents.messages.create(agent_id, input="Hello?", streaming=True))
    with pytest.raises(BadRequestError, match="Invalid tool call IDs"):
        client.agents.messages.create(agent_id, messages=[answer("another")])
    openai_fake.reply(Reply(text="Noted."), Reply(text="It is done."), Reply(text="Hello."))
    first = client.agents.messages.create(agent_id, messages=[answer(request.tool_call.tool_call_id)])
    again = client.agents.messages.create(agent_id, messages=[answer(request.tool_call.tool_call_id, approve=False)])
    # A new run goes on; what was answered stays answered.
    assert [one.message_type for one in again.messages] == ["assistant_message"]
    assert again.messages[0].run_id != first.messages[0].run_id
    assert client.agents.messages.create(agent_id, input="Hello?").messages[0].content == "Hello."
    with pytest.raises(BadRequestError, match="awaiting approval"):
        client.agents.messages.create(agent_id, messages=[answer("another")])


def test_a_message_in_line_is_refused_when_it_finds_calls_waiting(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent_id = create(client, MODEL, tool_rules=[INSERT])
    model = openai_fake.gate()
    openai_fake.reply(Reply(calls=(note("Name: Ada"),), gate=model))
    with ThreadPoolExecutor() as threads:
        first = threads.submit(client.agents.messages.create, agent_id, input="I am Ada.")
        model.wait_reached()
        second = threads.submit(client.agents.messages.create, agent_id, input="Hello?")
        wait_in_line(stack, agent_id)
        model.open()
        with pytest.raises(ConflictError) as refused:
            second.result()
        request = asked_for(first.result().messages)
    body: Any = refused.value.body
    assert (body["detail"]["code"], body["detail"]["pending_request_id"]) == ("PENDING_APPROVAL", request.id)
    assert "Hello?" not in [getattr(one, "content", "") for one in client.agents.messages.list(agent_id).items]


@pytest.mark.parametrize("by", ["run", "agent", "conversation"])
def test_what_waits_can_be_called_off(ask: Callable[..., Any], openai_fake: OpenAIServer, by: str) -> None:
    client, agent_id, request = ask(note("Name: Ada"), note("Likes: Haskell"))
    if by == "conversation":
        fates = client.conversations.cancel("default", agent_id=agent_id)
    else:
        fates = client.agents.messages.cancel(agent_id, **({"run_ids": [request.run_id]} if by == "run" else {}))
    assert fates == {request.run_id: "cancelled"}
    assert client.runs.retrieve(request.run_id).status == "cancelled"
    assert client.agents.retrieve(agent_id, include=["agent.pending_approval"]).pending_approval is None
    listed = client.agents.messages.list(agent_id, order="desc", limit=1).items
    assert [one.status for one in listed[0].tool_returns] == ["error", "error"]
    assert (listed[0].run_id, listed[0].step_id) == (request.run_id, request.step_id)
    with pytest.raises(ConflictError):
        client.agents.messages.cancel(agent_id)
    openai_fake.reply(Reply(text="As you like."))
    assert client.agents.messages.create(agent_id, input="Never mind.").messages[0].content == "As you like."
    assert "Ada" not in human(client, agent_id)


def test_a_fork_waits_by_itself(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent_id = create(client, MODEL, tool_rules=[INSERT])
    source = client.conversations.create(agent_id=agent_id)
    openai_fake.reply(Reply(calls=(note("Name: Ada"),)), Reply(text="Never mind."), Reply(text="Noted."))

    def turn(conversation: Any, message: Any) -> Any:
        return list(client.conversations.messages.create(conversation.id, messages=[message]))

    def said(chunks: Any) -> list[str]:
        return [chunk.content for chunk in chunks if chunk.message_type == "assistant_message"]

    request = asked_for(turn(source, {"role": "user", "content": "I am Ada."}))
    fork = client.conversations.fork(source.id)
    with pytest.raises(APIStatusError, match="waiting for approval"):
        turn(fork, {"role": "user", "content": "Hello?"})
    # The run that asked is the source's, where it waits on.
    assert client.conversations.cancel(fork.id) == {}
    assert said(turn(fork, {"role": "user", "content": "Leave it."})) == ["Never mind."]
    assert said(turn(source, answer(request.tool_call.tool_call_id))) == ["Noted."]
    assert client.runs.retrieve(request.run_id).status == "completed"
    assert human(client, agent_id).count("Name: Ada") == 1


@pytest.mark.parametrize("on_timeout", ["deny", "approve"])
def test_a_rule_answers_when_nobody_does(stack: Stack, openai_fake: OpenAIServer, on_timeout: str) -> None:
    client = stack.client()
    rule: Any = INSERT | {"timeout_seconds": 1, "on_timeout": on_timeout}
    agent_id = create(client, MODEL, tool_rules=[rule])
    openai_fake.reply(Reply(calls=(note("Name: Ada"),)), Reply(text="Nobody was there."))
    request = asked_for(client.agents.messages.create(agent_id, input="I am Ada.").messages)
    shown = client.agents.retrieve(agent_id).tool_rules[0].model_dump()
    assert (shown["timeout_seconds"], shown["on_timeout"]) == (1, on_timeout)

    def answer() -> Any:
        newest = client.agents.messages.list(agent_id, order="desc", limit=1).items[0]
        return newest if getattr(newest, "content", None) == "Nobody was there." else None

    newest = wait_until(answer, 60, pause=0.1)
    assert client.runs.retrieve(newest.run_id).background
    assert ("Ada" in human(client, agent_id)) is (on_timeout == "approve")
    listed = client.agents.messages.list(agent_id, order="asc", limit=100).items
    [response] = [one for one in listed if one.message_type == "approval_response_message"]
    [decision] = response.approvals
    assert (decision.tool_call_id, decision.approve) == (request.tool_call.tool_call_id, on_timeout == "approve")
    assert "Nobody answered within 1 s" in decision.reason


def test_as_the_terminal_client_runs_its_tools(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent_id = create(client, MODEL, parallel_tool_calls=True)
    conversation = client.conversations.create(agent_id=agent_id)

    def turn(**message: Any) -> list[Any]:
        stream = client.conversations.messages.create(
            conversation.id,
            messages=[message],
            streaming=True,
            stream_tokens=True,
            background=True,
            include_pings=True,
            client_tools=[LS],
        )
        return list(stream)

    openai_fake.reply(
        Reply(
            text="Let me look.",
            calls=(ToolCall("ls", {"path": "/"}, "call_a"), ToolCall("ls", {"path": "/x"}, "call_b")),
        )
    )
    chunks = turn(role="user", content=[{"type": "text", "text": "What is there?"}], otid="otid-1")
    assert types(chunks)[-2:] == ["stop_reason", "usage_statistics"]
    assert chunks[-2].stop_reason == "requires_approval"
    sequences = [chunk.seq_id for chunk in chunks if getattr(chunk, "seq_id", None) is not None]
    assert sequences == sorted(sequences)
    assert client.conversations.retrieve(conversation.id).id == conversation.id

    openai_fake.reply(Reply(text="There is a.txt, and /x is refused."))
    done = {"type": "tool", "tool_call_id": "call_a", "tool_return": "a.txt", "status": "success", "stdout": ["a.txt"]}
    refused = {"type": "approval", "tool_call_id": "call_b", "approve": False, "reason": "not there"}
    chunks = turn(type="approval", approvals=[done, refused], otid="otid-2")
    assert "".join(one.content for one in chunks if one.message_type == "assistant_message").startswith(
        "There is a.txt"
    )
    assert chunks[-2].stop_reason == "end_turn"
    sent = [message for message in openai_fake.bodies()[-1]["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in sent] == ["call_a", "call_b"]
    assert ("a.txt" in str(sent[0]), "not there" in str(sent[1])) == (True, True)
    # The same request again, as after a lost connection, is no second turn.
    before = len(openai_fake.bodies())
    turn(type="approval", approvals=[done, refused], otid="otid-2")
    assert len(openai_fake.bodies()) == before


def test_what_waits_outlives_its_processes_and_is_answered_by_any_client(
    own_stack: Stack, openai_fake: OpenAIServer
) -> None:
    agent_id = create(own_stack.client(), MODEL, tool_rules=[INSERT])
    openai_fake.reply(Reply(calls=(note("Name: Ada"),)))
    own_stack.client().agents.messages.create(agent_id, input="I am Ada.")
    own_stack.stop()
    own_stack.start()
    another = own_stack.client()
    waiting = another.agents.retrieve(agent_id, include=["agent.pending_approval"]).pending_approval
    assert waiting.tool_call.name == "memory_insert"
    openai_fake.reply(Reply(text="Noted."))
    reply = another.agents.messages.create(agent_id, messages=[answer(waiting.tool_call.tool_call_id)])
    assert reply.messages[-1].content == "Noted."
    assert human(another, agent_id).endswith("Name: Ada")


@pytest.mark.sandbox
def test_an_agent_service_that_is_killed_after_the_answer_lets_each_call_act_once(
    own_stack: Stack, openai_fake: OpenAIServer
) -> None:
    client = own_stack.client()
    tool = client.tools.upsert(source_code=SLOW)
    rules: Any = [{"type": "requires_approval", "tool_name": "slow"}]
    agent_id = create(client, MODEL, tool_ids=[tool.id], tool_rules=rules, parallel_tool_calls=True)
    openai_fake.reply(Reply(calls=(ToolCall("slow", {"seconds": 2.0}, "call_slow"), note("Name: Ada", "call_note"))))
    client.agents.messages.create(agent_id, input="I am Ada.")
    openai_fake.reply(Reply(text="All done."))

    def taken() -> bool:
        listed = own_stack.client().agents.messages.list(agent_id, order="desc", limit=1).items
        return "approval_response_message" in types(listed)

    with killed_during(own_stack, "agent", taken):
        reply = client.agents.messages.create(agent_id, messages=[answer("call_slow")])
    assert reply.messages[-1].content == "All done."
    [returned] = [one for one in reply.messages if one.message_type == "tool_return_message"]
    assert [(one.tool_call_id, one.status) for one in returned.tool_returns] == [
        ("call_slow", "success"),
        ("call_note", "success"),
    ]
    assert human(client, agent_id).count("Name: Ada") == 1
