"""Calls that wait for the client: asked for, answered and refused, through the official SDK and raw HTTP."""

from __future__ import annotations

from typing import Any

import letta_client
import pytest
from letta_client import AsyncLetta

from loci.agent.v1 import (
    agent_pb2,
    agent_service_pb2,
    conversation_service_pb2,
    message_pb2,
    message_service_pb2,
)
from services.common.errors import Aborted, InvalidArgument, LociError
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID, RUN_ID, attached, ended, event
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_turns import HELLO, MESSAGES, answers, fails, stream, streams

PENDING_ID = "message-00000000-0000-4000-8000-0000000000ff"
PENDING = Aborted(
    "the conversation is waiting for approval of a tool call; answer it first",
    reason="APPROVAL_PENDING",
    metadata={"pending_request_id": PENDING_ID},
)
UNKNOWN_CALL = InvalidArgument("c9 does not wait; c1 does", reason="TOOL_CALL_IDS_INVALID")
NOTHING_WAITS = InvalidArgument("no call waits", reason="NO_PENDING_APPROVAL")


def waiting(name: str = "roll_dice", arguments: str = "{}", call_id: str = "c1") -> message_pb2.Message:
    """A call that waits."""
    shown = samples.called((call_id, name, arguments), number=1)
    calls = list(shown.tool_call_message.tool_calls)
    shown.approval_request_message.CopyFrom(message_pb2.ApprovalRequestMessage(tool_calls=calls))
    return shown


def refuses(backend: Backend, error: LociError) -> None:
    """SendMessages and StreamMessages refuse."""

    def answer(_: Any) -> None:
        raise error

    backend.on("SendMessages", answer)
    fails(backend, "StreamMessages", error)


def failed(error: LociError) -> message_service_pb2.TurnError:
    """`error` as the end of a run that waited in line."""
    detail = error.metadata.get("pending_request_id", "")
    return message_service_pb2.TurnError(
        error_type="internal_error", message=error.message, reason=error.reason, detail=detail
    )


async def test_a_round_trip_with_a_tool_of_the_client(edge: Edge, backend: Backend) -> None:
    answers(backend, waiting("ls", '{"path": "/"}'), end=samples.turn_end(agent_pb2.STOP_REASON_REQUIRES_APPROVAL))
    tools: Any = [{"name": "ls", "description": "Lists.", "parameters": {"type": "object"}}]
    asked = await edge.sdk.agents.messages.create(AGENT_ID, input="what is there?", client_tools=tools)
    [request] = asked.messages
    assert asked.stop_reason.stop_reason == "requires_approval"
    assert request.message_type == "approval_request_message"
    assert (request.tool_call.name, request.tool_call.tool_call_id) == ("ls", "c1")
    [sent] = backend.requests("SendMessages")
    assert [tool.name for tool in sent.turn.options.client_tools] == ["ls"]
    assert sent.turn.options.client_tools[0].parameters_json == '{"type":"object"}'

    answers(backend, samples.said("a file"))
    reply: Any = {
        "type": "approval",
        "approvals": [{"type": "tool", "tool_call_id": "c1", "tool_return": "a.txt", "status": "success"}],
        "otid": "o-5",
    }
    await edge.sdk.agents.messages.create(
        AGENT_ID, messages=[reply, {"role": "user", "content": "and now?"}], client_tools=tools
    )
    answer, follow_up = backend.requests("SendMessages")[1].turn.messages
    assert (answer.role, answer.otid) == (message_pb2.MESSAGE_ROLE_APPROVAL, "o-5")
    assert answer.answers[0].tool_return.tool_return == "a.txt"
    assert (follow_up.role, follow_up.content[0].text) == (message_pb2.MESSAGE_ROLE_USER, "and now?")


async def test_a_call_that_waits_is_streamed_as_one(edge: Edge, backend: Backend) -> None:
    streams(
        backend, attached(), event(1, delta=waiting("ls", '{"pa')), event(2, delta=waiting("", 'th": 1}')),
        event(3, message=waiting("ls", '{"path": 1}')), ended(4, agent_pb2.STOP_REASON_REQUIRES_APPROVAL),
    )  # fmt: skip
    chunks: Any = await edge.sdk.agents.messages.create(AGENT_ID, input="hi", streaming=True, stream_tokens=True)
    seen = [chunk async for chunk in chunks]
    requests = [chunk for chunk in seen if chunk.message_type == "approval_request_message"]
    assert [(chunk.id, chunk.tool_call.tool_call_id) for chunk in requests] == [("message-1", "c1")] * 3
    assert [chunk.tool_calls.name for chunk in requests] == ["ls", None, None]
    assert "".join(chunk.tool_calls.arguments or "" for chunk in requests) == '{"path": 1}'
    assert [chunk.stop_reason for chunk in seen if chunk.message_type == "stop_reason"] == ["requires_approval"]


@pytest.mark.parametrize("in_line", [False, True])
async def test_something_else_while_a_call_waits(edge: Edge, backend: Backend, in_line: bool) -> None:
    if in_line:
        answers(backend, end=samples.turn_end(agent_pb2.STOP_REASON_ERROR, failed(PENDING)))
    else:
        refuses(backend, PENDING)
    async with AsyncLetta(base_url=edge.url, max_retries=2) as sdk:
        with pytest.raises(letta_client.ConflictError) as caught:
            await sdk.agents.messages.create(AGENT_ID, input="hi")
    assert caught.value.body == {
        "detail": {"code": "PENDING_APPROVAL", "message": PENDING.message, "pending_request_id": PENDING_ID}
    }
    # The SDK would ask twice more, in vain.
    assert len(backend.requests("SendMessages")) == 1


@pytest.mark.parametrize("in_line", [False, True])
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PENDING, "waiting for approval"),
        (UNKNOWN_CALL, "Invalid tool call IDs: c9 does not wait; c1 does"),
        (NOTHING_WAITS, "no call waits"),
    ],
)
async def test_what_is_wrong_with_an_answer_is_told_in_the_stream(
    edge: Edge, backend: Backend, error: LociError, words: str, in_line: bool
) -> None:
    if in_line:
        streams(backend, attached(), ended(7, agent_pb2.STOP_REASON_ERROR, failed(error)))
    else:
        refuses(backend, error)
    ping, stop, (name, told), done = await stream(edge, **HELLO, streaming=True)
    [asked] = backend.requests("StreamMessages")
    assert (ping["message_type"], ping["run_id"]) == ("ping", RUN_ID if in_line else asked.turn.run_id)
    assert (stop["stop_reason"], name, done) == ("error", "error", "[DONE]")
    assert (told["error_type"], told["run_id"]) == ("internal_error", ping["run_id"])
    assert words in told["detail"]
    assert words in told["message"]


@pytest.mark.parametrize("in_line", [False, True])
@pytest.mark.parametrize(
    ("error", "detail"),
    [(UNKNOWN_CALL, "Invalid tool call IDs: c9 does not wait; c1 does"), (NOTHING_WAITS, "no call waits")],
)
async def test_answers_that_fit_no_call(
    edge: Edge, backend: Backend, error: LociError, detail: str, in_line: bool
) -> None:
    if in_line:
        answers(backend, end=samples.turn_end(agent_pb2.STOP_REASON_ERROR, failed(error)))
    else:
        refuses(backend, error)
    approval: Any = {"type": "approval", "approvals": [{"type": "approval", "tool_call_id": "c9", "approve": True}]}
    with pytest.raises(letta_client.BadRequestError) as caught:
        await edge.sdk.agents.messages.create(AGENT_ID, messages=[approval])
    assert caught.value.body == {"detail": detail}


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_busy_conversation_that_rejects(edge: Edge, backend: Backend, streaming: bool) -> None:
    busy = Aborted(
        f"another request is currently being processed (run_id={RUN_ID})",
        reason="CONVERSATION_BUSY",
        metadata={"run_id": RUN_ID},
    )
    refuses(backend, busy)
    answer = await edge.http.post(MESSAGES, json={**HELLO, "streaming": streaming, "on_busy": "reject"})
    assert (answer.status_code, answer.json()) == (409, {"detail": busy.message, "run_id": RUN_ID})
    assert answer.headers["x-should-retry"] == "false"
    [request] = backend.requests("StreamMessages" if streaming else "SendMessages")
    assert request.turn.on_busy == message_service_pb2.ON_BUSY_REJECT


async def test_what_waits_is_listed_with_its_due_time(edge: Edge, backend: Backend) -> None:
    waits = agent_pb2.PendingApproval(
        request_id=PENDING_ID,
        run_id=RUN_ID,
        tool_calls_json='[{"name": "wipe", "arguments": "{}", "tool_call_id": "c1"}]',
    )
    due = agent_pb2.PendingApproval()
    due.CopyFrom(waits)
    due.due_at.FromJsonString("2026-01-31T09:30:00Z")
    conversation_id = "conv-00000000-0000-4000-8000-0000000000aa"
    backend.on(
        "ListPendingApprovals",
        lambda _: conversation_service_pb2.ListPendingApprovalsResponse(
            approvals=[
                conversation_service_pb2.ConversationApproval(conversation_id=conversation_id, approval=due),
                conversation_service_pb2.ConversationApproval(approval=waits),
            ]
        ),
    )
    backend.on("GetAgent", lambda _: agent_service_pb2.GetAgentResponse(agent=agent_pb2.Agent(id=AGENT_ID)))
    answer = await edge.http.get(f"/v1/agents/{AGENT_ID}/approvals")
    soon, some_day = answer.json()
    assert (soon["conversation_id"], soon["due_at"]) == (conversation_id, "2026-01-31T09:30:00+00:00")
    assert (some_day["conversation_id"], some_day["due_at"]) == (None, None)
    assert some_day["request"]["id"] == PENDING_ID
    assert some_day["request"]["tool_calls"][0]["name"] == "wipe"
    [request] = backend.requests("ListPendingApprovals")
    assert request.agent_id == AGENT_ID
