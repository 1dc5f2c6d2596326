"""Conversations as bodies ask for them and as REST shows them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.resources.agents.responses import Models
from gateway.resources.conversations.requests import (
    CreateConversation,
    SendToConversation,
    UpdateConversation,
    create_request,
)
from gateway.resources.conversations.requests import update_request as request_of
from gateway.resources.conversations.responses import ConversationKey, conversation, written_conversation
from loci.agent.v1 import conversation_pb2

AGENT_ID = "agent-00000000-0000-4000-8000-00000000000a"
CONVERSATION_ID = "conv-00000000-0000-4000-8000-00000000000f"


def _paths(**fields: Any) -> list[str]:
    request = request_of(CONVERSATION_ID, UpdateConversation(**fields))
    return [] if request is None else list(request.update_mask.paths)


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({}, []),
        ({"archived": None, "last_message_at": None}, []),
        ({"archived": False}, ["archived_at"]),
        ({"summary": ""}, ["summary"]),
        ({"summary": None, "context_window_limit": None}, ["context_window_limit", "summary"]),
        ({"model_settings": {}, "model": None}, ["model", "model_settings_json"]),
    ],
)
def test_what_a_change_names(fields: dict[str, Any], paths: list[str]) -> None:
    assert _paths(**fields) == paths


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [("2026-01-02T00:00:00", 0), ("2026-01-02T00:00:00+02:00", -7_200), ("2026-01-02T00:00:00Z", 0)],
)
def test_times_without_an_offset_are_utc(sent: str, seconds: int) -> None:
    request = request_of(CONVERSATION_ID, UpdateConversation.model_validate({"last_message_at": sent}))
    assert request is not None
    midnight = datetime(2026, 1, 2, tzinfo=UTC).timestamp()
    assert request.conversation.last_message_at.seconds == midnight + seconds


def test_each_request_for_a_new_one_has_an_id_of_its_own() -> None:
    one, two = (create_request(AGENT_ID, CreateConversation()) for _ in range(2))
    assert one.conversation_id != two.conversation_id


def test_the_default_is_to_stream() -> None:
    assert SendToConversation.model_validate({"input": "Hello"}).streaming
    with pytest.raises(ValueError, match="agent-<uuid>"):
        SendToConversation.model_validate({"input": "Hello", "agent_id": "agent-1"})


def test_runs_of_the_default_conversation_have_the_agents_uuid() -> None:
    assert ConversationKey(AGENT_ID).run_filter == "conv-00000000-0000-4000-8000-00000000000a"
    assert ConversationKey(AGENT_ID, CONVERSATION_ID).run_filter == CONVERSATION_ID


def test_what_is_not_its_own_is_null() -> None:
    shown = conversation(conversation_pb2.Conversation(id=CONVERSATION_ID, agent_id=AGENT_ID), Models({}, {}))
    for name in ("model", "model_settings", "context_window_limit", "summary", "archived_at", "last_message_at"):
        assert shown[name] is None
    assert (shown["archived"], shown["in_context_message_ids"]) == (False, [])
    listed = conversation(conversation_pb2.Conversation(), Models({}, {}), relations=False)
    assert listed["in_context_message_ids"] is None


def test_the_answer_of_a_change_has_no_window() -> None:
    stored = conversation_pb2.Conversation(id=CONVERSATION_ID, in_context_message_ids=["message-1"])
    assert conversation(stored, Models({}, {}))["in_context_message_ids"] == ["message-1"]
    assert written_conversation(stored, Models({}, {}))["in_context_message_ids"] == []
