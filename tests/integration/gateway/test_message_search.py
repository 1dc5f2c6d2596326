"""Searching messages through the official SDK, and where older clients look for it."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.common.errors import InvalidArgument
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID, NOON
from tests.integration.gateway.scripted import Backend

CONVERSATION_ID = "conv-00000000-0000-4000-8000-00000000000f"


def _hit(number: int, conversation_id: str = "", **content: Any) -> wire.MessageHit:
    message = message_pb2.Message(id=f"message-{number}", date=NOON, **content)
    return wire.MessageHit(message=message, agent_id=AGENT_ID, conversation_id=conversation_id, score=1 / number)


def _call(name: str, arguments: str) -> message_pb2.ToolCallMessage:
    return message_pb2.ToolCallMessage(
        tool_calls=[message_pb2.ToolCall(name=name, arguments=arguments, tool_call_id="call")]
    )


def _returned(name: str, text: str) -> message_pb2.ToolReturnMessage:
    one = message_pb2.ToolReturn(tool_call_id="call", status="success", tool_return=text)
    return message_pb2.ToolReturnMessage(tool_returns=[one])


HITS = [
    _hit(1, user_message=message_pb2.UserMessage(content=[message_pb2.ContentPart(text="A car.")])),
    _hit(2, CONVERSATION_ID, assistant_message=message_pb2.AssistantMessage(content="An automobile.")),
    _hit(3, tool_call_message=_call("send_message", '{"message": "Your car."}')),
    _hit(4, tool_call_message=_call("look", '{"at": "car"}')),
    _hit(5, system_message=message_pb2.SystemMessage(content="Cars are loud.")),
    _hit(6, tool_return_message=_returned("look", "Three cars.")),
]


async def test_results_are_of_the_four_shapes(edge: Edge, backend: Backend) -> None:
    backend.on("SearchMessages", lambda _: wire.SearchMessagesResponse(hits=HITS[:5]))
    found = await edge.sdk.messages.search(
        query="car",
        search_mode="fts",
        limit=4,
        agent_id=AGENT_ID,
        conversation_id=CONVERSATION_ID,
        start_date="2026-01-01T00:00:00Z",
        end_date="2026-01-02T00:00:00+01:00",
    )
    assert [
        (type(one).__name__.removeprefix("MessageSearchResponseItem"), getattr(one, "content", "")) for one in found
    ] == [
        ("UserMessageListResult", "A car."),
        ("AssistantMessageListResult", "An automobile."),
        ("AssistantMessageListResult", "Your car."),
        ("SystemMessageListResult", "Cars are loud."),
    ]
    assert [one.conversation_id for one in found] == [None, CONVERSATION_ID, None, None]
    assert (found[0].agent_id, found[0].message_id) == (AGENT_ID, "message-1")
    assert found[0].created_at.isoformat() == "2025-12-01T12:00:00.123456+00:00"
    assert backend.requests("SearchMessages")[-1] == wire.SearchMessagesRequest(
        agent_id=AGENT_ID,
        conversation_id=CONVERSATION_ID,
        query="car",
        mode=wire.MESSAGE_SEARCH_MODE_TEXT,
        roles=["user", "assistant", "system"],
        limit=18,
        start_time=Timestamp(seconds=1_767_225_600),
        end_time=Timestamp(seconds=1_767_308_400),
    )


async def test_older_clients_and_tools(edge: Edge, backend: Backend) -> None:
    found = wire.SearchMessagesResponse(hits=HITS, without_vectors=["loci/hash"])
    backend.on("SearchMessages", lambda _: found)
    for path in ("/v1/agents/messages/search", "/v1/messages/search/"):
        body = {"query": "car", "limit": 1, "roles": ["tool"], "agent_id": AGENT_ID, "conversation_id": "default"}
        answer = await edge.http.post(path, json={**body, "limit": 9})
        assert answer.headers["x-loci-without-vectors"] == "loci/hash"
        assert answer.json()[-1] == {
            "message_type": "tool_return_message",
            "message_id": "message-6",
            "content": "Three cars.",
            "agent_id": AGENT_ID,
            "conversation_id": None,
            "created_at": "2025-12-01T12:00:00.123456+00:00",
        }
        asked = backend.requests("SearchMessages")[-1]
        assert (asked.roles, asked.conversation_id, asked.mode) == (["tool"], AGENT_ID, wire.MESSAGE_SEARCH_MODE_HYBRID)
        assert len((await edge.http.post(path, json=body)).json()) == 1


async def test_what_is_no_search(edge: Edge, backend: Backend) -> None:
    for body in (
        {},
        {"query": "x", "limit": 0},
        {"query": "x", "search_mode": "sql"},
        {"query": "x", "agent_id": "agent-1"},
        {"query": "x", "conversation_id": "somewhere"},
        {"query": "x" * 10_001},
        {"query": "x", "start_date": "yesterday"},
        {"query": "x", "roles": ["approval"]},
    ):
        assert (await edge.http.post("/v1/messages/search", json=body)).status_code == 422, body

    def refuse(_: Any) -> Any:
        raise InvalidArgument("the search begins after its end", reason="MESSAGE_QUERY_INVALID")

    backend.on("SearchMessages", refuse)
    assert (await edge.http.post("/v1/messages/search", json={"query": "x"})).status_code == 422


async def test_a_result_brings_along_what_was_said_beside_it(edge: Edge, backend: Backend) -> None:
    hit = wire.MessageHit()
    hit.CopyFrom(HITS[0])
    hit.before.extend(one.message for one in HITS[3:5])
    hit.after.append(HITS[1].message)
    backend.on("SearchMessages", lambda _: wire.SearchMessagesResponse(hits=[hit]))
    (found,) = (await edge.http.post("/v1/messages/search", json={"query": "car", "context": 2})).json()
    # A call has no shape there.
    assert [one["content"] for one in found["context"]["before"]] == ["Cars are loud."]
    assert [(one["content"], one["message_type"]) for one in found["context"]["after"]] == [
        ("An automobile.", "assistant_message")
    ]
    assert backend.requests("SearchMessages")[-1].context == 2
    (without,) = (await edge.http.post("/v1/messages/search", json={"query": "car"})).json()
    assert "context" not in without
