"""Conversations through the official SDK: what the routes ask of the agent service, and how they show its answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from letta_client import NotFoundError, UnprocessableEntityError

from loci.agent.v1 import (
    conversation_pb2,
    conversation_service_pb2,
    message_service_pb2,
    run_pb2,
    run_service_pb2,
)
from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING, PageRequest
from services.common.errors import FailedPrecondition, NotFound
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID, BLOCK_ID, NOON, RUN_ID
from tests.integration.gateway.scripted import Backend

CONVERSATION_ID = "conv-00000000-0000-4000-8000-00000000000f"
DEFAULT_AS_CONVERSATION = CONVERSATION_ID[:-1] + "a"
FIELDS = {
    "id",
    "agent_id",
    "archived",
    "archived_at",
    "context_window_limit",
    "created_at",
    "created_by_id",
    "description",
    "in_context_message_ids",
    "isolated_block_ids",
    "last_message_at",
    "last_updated_by_id",
    "model",
    "model_settings",
    "summary",
    "updated_at",
}


def conversation(**fields: Any) -> conversation_pb2.Conversation:
    """A conversation of the sample agent."""
    given: dict[str, Any] = {
        "id": CONVERSATION_ID,
        "agent_id": AGENT_ID,
        "summary": "Travel",
        "isolated_block_labels": ["human"],
        "isolated_block_ids": [BLOCK_ID],
        "in_context_message_ids": ["message-1"],
        "created_by_id": "user-1",
        "last_updated_by_id": "user-1",
        "created_at": NOON,
        "updated_at": NOON,
    }
    return conversation_pb2.Conversation(**(given | fields))


def _giving(response: Any) -> Callable[[Any], Any]:
    return lambda _: response(conversation=conversation())


@pytest.fixture(autouse=True)
def answers(backend: Backend) -> None:
    """A service with one conversation."""
    for method in ("Create", "Get", "Update", "Fork"):
        backend.on(f"{method}Conversation", _giving(getattr(conversation_service_pb2, f"{method}ConversationResponse")))
    backend.on("DeleteConversation", lambda _: conversation_service_pb2.DeleteConversationResponse())
    backend.on(
        "ListConversations",
        lambda _: conversation_service_pb2.ListConversationsResponse(conversations=[conversation()]),
    )
    backend.on(
        "RecompileConversation", lambda _: conversation_service_pb2.RecompileConversationResponse(prompt="Be kind.")
    )


async def test_creating(edge: Edge, backend: Backend) -> None:
    made = await edge.sdk.conversations.create(
        agent_id=AGENT_ID,
        summary="Travel",
        model="openai/large",
        model_settings={"provider_type": "openai", "temperature": 0.5},
        context_window_limit=9_000,
        hidden=True,
        extra_body={"isolated_block_labels": ["human"]},
    )
    assert (made.id, made.summary, made.archived) == (CONVERSATION_ID, "Travel", False)
    (asked,) = backend.requests("CreateConversation")
    assert asked.conversation_id.startswith("conv-")
    assert (asked.agent_id, list(asked.isolated_block_labels)) == (AGENT_ID, ["human"])
    draft = asked.conversation
    assert (draft.summary, draft.model, draft.context_window_limit, draft.hidden) == (
        "Travel",
        "openai/large",
        9_000,
        True,
    )
    assert orjson.loads(draft.model_settings_json) == {"provider_type": "openai", "temperature": 0.5}


async def test_creating_without_a_body(edge: Edge, backend: Backend) -> None:
    answer = await edge.http.post(f"/v1/conversations/?agent_id={AGENT_ID}")
    assert answer.status_code == 200
    assert set(answer.json()) == FIELDS
    assert answer.json()["isolated_block_ids"] == [BLOCK_ID]
    assert answer.json()["model_settings"] is None
    (asked,) = backend.requests("CreateConversation")
    assert asked.conversation == conversation_pb2.Conversation()


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 422), ("?agent_id=", 404), ("?agent_id=agent-1", 404), (f"?agent_id={CONVERSATION_ID}", 404)],
)
async def test_creating_needs_an_agent(edge: Edge, query: str, status: int) -> None:
    answer = await edge.http.post(f"/v1/conversations/{query}")
    assert answer.status_code == status
    assert "agent" in answer.json()["detail"].lower()


async def test_a_label_that_the_agent_lacks_is_the_bodys_fault(edge: Edge, backend: Backend) -> None:
    def refuse(_: Any) -> None:
        raise NotFound("Block with label 'missing' not found", reason="BLOCK_NOT_FOUND")

    backend.on("CreateConversation", refuse)
    answer = await edge.http.post(
        f"/v1/conversations/?agent_id={AGENT_ID}", json={"isolated_block_labels": ["missing"]}
    )
    assert (answer.status_code, answer.json()) == (400, {"detail": "Block with label 'missing' not found"})


async def test_a_conversation_that_is_not_there_has_no_messages(edge: Edge, backend: Backend) -> None:
    def refuse(_: Any) -> None:
        raise NotFound("Conversation not found", reason="CONVERSATION_NOT_FOUND")

    backend.on("GetConversation", refuse)
    for conversation_id in (CONVERSATION_ID, "default"):
        answer = await edge.http.get(f"/v1/conversations/{conversation_id}/messages")
        assert (answer.status_code, answer.json()) == (200, [])
        answer = await edge.http.post(f"/v1/conversations/{conversation_id}/stream", json={})
        assert answer.status_code == 400
        assert answer.json()["detail"].startswith("No active runs found")


async def test_retrieving(edge: Edge, backend: Backend) -> None:
    archived = conversation(archived_at=NOON, last_message_at=NOON, model="openai/large", model_settings_json="{}")
    backend.on("GetConversation", lambda _: conversation_service_pb2.GetConversationResponse(conversation=archived))
    found = await edge.sdk.conversations.retrieve(CONVERSATION_ID)
    assert (found.archived, found.model, found.in_context_message_ids) == (True, "openai/large", ["message-1"])
    assert found.archived_at == found.last_message_at == datetime(2025, 12, 1, 12, 0, 0, 123_456, UTC)


@pytest.mark.parametrize("conversation_id", ["default", "conv-1", AGENT_ID])
async def test_only_conversations_are_retrieved(edge: Edge, conversation_id: str) -> None:
    with pytest.raises(UnprocessableEntityError) as caught:
        await edge.sdk.conversations.retrieve(conversation_id)
    assert caught.value.response.json()["examples"] == ["conv-123e4567-e89b-42d3-8456-426614174000"]


async def test_listing(edge: Edge, backend: Backend) -> None:
    (found,) = await edge.sdk.conversations.list(
        agent_id=AGENT_ID,
        after=CONVERSATION_ID,
        limit=5,
        order="asc",
        order_by="last_message_at",
        archive_status="all",
        summary_search="travel",
    )
    # Null: not looked up.
    assert (found.id, found.in_context_message_ids) == (CONVERSATION_ID, None)
    assert set((await edge.http.get("/v1/conversations/")).json()[0]) == FIELDS
    chosen, plain = backend.requests("ListConversations")
    assert chosen == conversation_service_pb2.ListConversationsRequest(
        order_by=conversation_service_pb2.CONVERSATION_ORDER_LAST_MESSAGE_AT,
        agent_id=AGENT_ID,
        archive_status=conversation_service_pb2.ARCHIVE_STATUS_ALL,
        summary_search="travel",
        page=PageRequest(page_size=5, after=CONVERSATION_ID, order=ORDER_ASCENDING),
    )
    assert plain == conversation_service_pb2.ListConversationsRequest(
        order_by=conversation_service_pb2.CONVERSATION_ORDER_CREATED_AT,
        archive_status=conversation_service_pb2.ARCHIVE_STATUS_UNARCHIVED,
        page=PageRequest(page_size=50, order=ORDER_DESCENDING),
    )


async def test_changing(edge: Edge, backend: Backend) -> None:
    await edge.sdk.conversations.update(
        CONVERSATION_ID, summary="New", archived=True, last_message_at=datetime(2026, 1, 2, tzinfo=UTC)
    )
    await edge.sdk.conversations.update(
        CONVERSATION_ID, model=None, model_settings=None, archived=None, last_message_at=None
    )
    await edge.sdk.conversations.update(CONVERSATION_ID)
    first, second = backend.requests("UpdateConversation")
    assert first.update_mask.paths == ["archived_at", "last_message_at", "summary"]
    assert (first.conversation.summary, first.conversation.HasField("archived_at")) == ("New", True)
    assert first.conversation.last_message_at.ToDatetime() == datetime(2026, 1, 2)
    # Null takes away what is the conversation's own; of other fields it says nothing.
    assert second.update_mask.paths == ["model", "model_settings_json"]
    assert second.conversation == conversation_pb2.Conversation()


async def test_deleting(edge: Edge, backend: Backend) -> None:
    assert await edge.sdk.conversations.delete(CONVERSATION_ID) is None
    assert [each.conversation_id for each in backend.requests("DeleteConversation")] == [CONVERSATION_ID]


async def test_forking(edge: Edge, backend: Backend) -> None:
    message_id = "message-00000000-0000-4000-8000-000000000001"
    await edge.sdk.conversations.fork(CONVERSATION_ID, message_id=message_id, hidden=True)
    await edge.sdk.conversations.fork("default", agent_id=AGENT_ID)
    await edge.sdk.conversations.fork(AGENT_ID)
    asked = [
        (each.conversation_id, each.agent_id, each.message_id, each.hidden)
        for each in backend.requests("ForkConversation")
    ]
    assert asked == [
        (CONVERSATION_ID, AGENT_ID, message_id, True),
        ("", AGENT_ID, "", False),
        ("", AGENT_ID, "", False),
    ]
    with pytest.raises(NotFoundError, match="agent_id"):
        await edge.sdk.conversations.fork("default")
    refused: list[dict[str, Any]] = [{"agent_id": "agent-1"}, {"agent_id": AGENT_ID, "message_id": "1"}]
    for wrong in refused:
        with pytest.raises(UnprocessableEntityError):
            await edge.sdk.conversations.fork("default", **wrong)


async def test_the_agent_of_a_conversation_is_asked_for_once(edge: Edge, backend: Backend) -> None:
    for _ in range(2):
        await edge.sdk.conversations.fork(CONVERSATION_ID)
        await edge.sdk.conversations.recompile(CONVERSATION_ID)
    (asked,) = backend.requests("GetConversation")
    assert asked.omit_relations

    def gone(_: Any) -> Any:
        raise NotFound("Conversation not found", reason="CONVERSATION_NOT_FOUND")

    backend.on("GetConversation", gone)
    with pytest.raises(NotFoundError, match="Conversation not found"):
        await edge.sdk.conversations.fork(DEFAULT_AS_CONVERSATION)


async def test_recompiling(edge: Edge, backend: Backend) -> None:
    # JSON, which the SDK leaves as it is.
    assert await edge.sdk.conversations.recompile(CONVERSATION_ID, dry_run=True) == '"Be kind."'
    assert await edge.sdk.conversations.recompile("default", agent_id=AGENT_ID) == '"Be kind."'
    assert await edge.sdk.agents.recompile(AGENT_ID, dry_run=True, update_timestamp=True) == '"Be kind."'
    asked = [(each.conversation_id, each.agent_id, each.dry_run) for each in backend.requests("RecompileConversation")]
    assert asked == [(CONVERSATION_ID, AGENT_ID, True), ("", AGENT_ID, False), ("", AGENT_ID, True)]


async def test_cancelling(edge: Edge, backend: Backend) -> None:
    run = samples.run(status=run_pb2.RUN_STATUS_RUNNING)
    backend.on("CancelRuns", lambda _: run_service_pb2.CancelRunsResponse(runs=[run]))
    assert await edge.sdk.conversations.cancel(CONVERSATION_ID) == {RUN_ID: "cancelled"}
    assert await edge.sdk.conversations.cancel("default", agent_id=AGENT_ID) == {RUN_ID: "cancelled"}
    asked = [(each.agent_id, each.conversation_id) for each in backend.requests("CancelRuns")]
    # The default conversation has the agent's UUID.
    assert asked == [(AGENT_ID, CONVERSATION_ID), (AGENT_ID, DEFAULT_AS_CONVERSATION)]

    def nothing(_: Any) -> Any:
        raise FailedPrecondition("No active runs to cancel.", reason="NOTHING_TO_CANCEL")

    backend.on("CancelRuns", nothing)
    answer = await edge.http.post(f"/v1/conversations/{CONVERSATION_ID}/cancel")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "false")


async def test_saying_something_streams_by_default(edge: Edge, backend: Backend) -> None:
    said = samples.said("Hello, Ada")

    async def stream(request: message_service_pb2.StreamMessagesRequest) -> Any:
        for event in (samples.attached(request.turn.run_id), samples.event(1, message=said), samples.ended(2)):
            yield message_service_pb2.StreamMessagesResponse(event=event)

    backend.on("StreamMessages", stream)
    backend.on("SendMessages", lambda _: message_service_pb2.SendMessagesResponse(messages=[said]))
    chunks = [one async for one in await edge.sdk.conversations.messages.create(CONVERSATION_ID, input="Hello")]
    assert [one.message_type for one in chunks] == ["ping", "assistant_message", "stop_reason", "usage_statistics"]
    whole = await edge.http.post(
        "/v1/conversations/default/messages", json={"input": "Hello", "streaming": False, "agent_id": AGENT_ID}
    )
    assert whole.json()["messages"][0]["content"] == "Hello, Ada"
    (streamed,) = backend.requests("StreamMessages")
    (blocking,) = backend.requests("SendMessages")
    assert (streamed.turn.agent_id, streamed.turn.conversation_id) == (AGENT_ID, CONVERSATION_ID)
    assert (blocking.turn.agent_id, blocking.turn.conversation_id) == (AGENT_ID, "")
    assert (streamed.turn.locks, blocking.turn.locks) == (True, False)
    for body, status in (
        ({"input": "x"}, 404),
        ({"input": "x", "streaming": False, "stream_tokens": True, "agent_id": AGENT_ID}, 422),
    ):
        assert (await edge.http.post("/v1/conversations/default/messages", json=body)).status_code == status


async def test_listing_messages(edge: Edge, backend: Backend) -> None:
    backend.on("ListMessages", lambda _: message_service_pb2.ListMessagesResponse(messages=[samples.said("Hi")]))
    page = await edge.sdk.conversations.messages.list(CONVERSATION_ID, limit=5, order="asc")
    assert [one.to_dict()["content"] for one in page.items] == ["Hi"]
    filtered = await edge.sdk.conversations.messages.list(
        "default", agent_id=AGENT_ID, include_return_message_types=["user_message"]
    )
    assert filtered.items == []
    first, second = backend.requests("ListMessages")
    assert (first.agent_id, first.conversation_id, first.page.page_size, first.page.order == ORDER_ASCENDING) == (
        AGENT_ID,
        CONVERSATION_ID,
        5,
        True,
    )
    assert (second.agent_id, second.conversation_id) == (AGENT_ID, AGENT_ID)


async def test_compacting(edge: Edge, backend: Backend) -> None:
    response = message_service_pb2.CompactConversationResponse(
        summary="They met.", messages_count_before=9, messages_count_after=3
    )
    backend.on("CompactConversation", lambda _: response)
    answer = await edge.sdk.conversations.messages.compact(CONVERSATION_ID, compaction_settings={"mode": "all"})
    assert (answer.summary, answer.num_messages_before, answer.num_messages_after) == ("They met.", 9, 3)
    await edge.sdk.conversations.messages.compact("default", agent_id=AGENT_ID)
    first, second = backend.requests("CompactConversation")
    assert (first.agent_id, first.conversation_id) == (AGENT_ID, CONVERSATION_ID)
    assert orjson.loads(first.compaction_settings_json) == {"mode": "all"}
    assert (second.agent_id, second.conversation_id, second.compaction_settings_json) == (AGENT_ID, "", "")
