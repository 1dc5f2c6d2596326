"""Messages as REST shows them."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from letta_client.types import ToolReturnMessage
from letta_client.types.agents import (
    ApprovalRequestMessage,
    ApprovalResponseMessage,
    AssistantMessage,
    EventMessage,
    HiddenReasoningMessage,
    ReasoningMessage,
    SummaryMessage,
    SystemMessage,
    ToolCallMessage,
    UserMessage,
)
from pydantic import BaseModel

from gateway.resources.messages.responses import (
    SAID,
    answer_types,
    message,
    stop_reason,
    usage_statistics,
)
from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2

NOON = Timestamp(seconds=1_764_590_400, nanos=999_000_000)
COMMON = {
    "id": "message-1",
    "date": "2025-12-01T12:00:00+00:00",
    "name": None,
    "otid": None,
    "sender_id": None,
    "step_id": None,
    "run_id": None,
    "is_err": None,
    "seq_id": None,
}
CALL = {"name": "f", "arguments": "{}", "tool_call_id": "c1"}
# The SDK's type of each kind.
TYPES: dict[str, type[BaseModel]] = {
    "system_message": SystemMessage,
    "user_message": UserMessage,
    "reasoning_message": ReasoningMessage,
    "hidden_reasoning_message": HiddenReasoningMessage,
    "assistant_message": AssistantMessage,
    "tool_call_message": ToolCallMessage,
    "tool_return_message": ToolReturnMessage,
    "approval_request_message": ApprovalRequestMessage,
    "approval_response_message": ApprovalResponseMessage,
    "summary_message": SummaryMessage,
    "event_message": EventMessage,
}
TEXT = {"type": "text", "signature": None}
RETURN: dict[str, Any] = {"tool_call_id": "c1", "status": "error", "tool_return": "no", "stdout": ["a"], "stderr": []}


def _text(text: str) -> message_pb2.ContentPart:
    return message_pb2.ContentPart(text=text)


def _approved(**fields: Any) -> message_pb2.Answer:
    return message_pb2.Answer(decision=message_pb2.Decision(**fields))


def _answered(*answers: message_pb2.Answer) -> dict[str, Any]:
    return {"approval_response_message": message_pb2.ApprovalResponseMessage(answers=answers)}


NO_ANSWER = {"approve": None, "approval_request_id": None, "reason": None}


def _image(**fields: Any) -> message_pb2.ContentPart:
    return message_pb2.ContentPart(image=message_pb2.ImageContent(**fields))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"system_message": message_pb2.SystemMessage(content="be kind")},
            {"message_type": "system_message", "content": "be kind"},
        ),
        (
            {"user_message": message_pb2.UserMessage(content=[_text("hi")])},
            {"message_type": "user_message", "content": "hi"},
        ),
        (
            {"user_message": message_pb2.UserMessage(content=[_text("a"), _text("b")])},
            {"message_type": "user_message", "content": [TEXT | {"text": "a"}, TEXT | {"text": "b"}]},
        ),
        (
            {"user_message": message_pb2.UserMessage(content=[_image(url="https://x/a.png")])},
            {
                "message_type": "user_message",
                "content": [{"type": "image", "source": {"type": "url", "url": "https://x/a.png"}}],
            },
        ),
        (
            {"user_message": message_pb2.UserMessage(content=[_image(data_base64="AAE=", media_type="image/png")])},
            {
                "message_type": "user_message",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "AAE=", "detail": None},
                    }
                ],
            },
        ),
        (
            {"reasoning_message": message_pb2.ReasoningMessage(reasoning="hm", source="reasoner_model")},
            {"message_type": "reasoning_message", "reasoning": "hm", "source": "reasoner_model", "signature": None},
        ),
        (
            {"hidden_reasoning_message": message_pb2.HiddenReasoningMessage(state="redacted", hidden_reasoning="x")},
            {"message_type": "hidden_reasoning_message", "state": "redacted", "hidden_reasoning": "x"},
        ),
        (
            {"assistant_message": message_pb2.AssistantMessage(content="hi"), "otid": "o"},
            {"message_type": "assistant_message", "content": "hi", "otid": "o"},
        ),
        (
            {"tool_call_message": message_pb2.ToolCallMessage(tool_calls=[message_pb2.ToolCall(**CALL)])},
            {"message_type": "tool_call_message", "tool_call": CALL, "tool_calls": [CALL]},
        ),
        (
            {
                "tool_return_message": message_pb2.ToolReturnMessage(
                    tool_returns=[message_pb2.ToolReturn(**RETURN, name="f", captures=True)]
                ),
                "name": "f",
            },
            {
                "message_type": "tool_return_message",
                **RETURN,
                "tool_returns": [{**RETURN, "type": "tool"}],
                "name": "f",
            },
        ),
        (
            {
                "tool_return_message": message_pb2.ToolReturnMessage(
                    tool_returns=[
                        message_pb2.ToolReturn(
                            **RETURN, captures=True, content=[_text("no"), _image(url="https://x/a.png")]
                        ),
                        message_pb2.ToolReturn(tool_call_id="c2", status="success", tool_return="yes"),
                    ]
                )
            },
            {
                "message_type": "tool_return_message",
                **RETURN,
                "tool_returns": [
                    {
                        **RETURN,
                        "type": "tool",
                        "tool_return": [
                            TEXT | {"text": "no"},
                            {"type": "image", "source": {"type": "url", "url": "https://x/a.png"}},
                        ],
                    },
                    {
                        "type": "tool",
                        "tool_call_id": "c2",
                        "status": "success",
                        "tool_return": "yes",
                        # It ran where nothing is captured.
                        "stdout": None,
                        "stderr": None,
                    },
                ],
            },
        ),
        (
            {
                "approval_request_message": message_pb2.ApprovalRequestMessage(
                    tool_calls=[message_pb2.ToolCall(**CALL), message_pb2.ToolCall(**CALL | {"tool_call_id": "c2"})]
                )
            },
            {
                "message_type": "approval_request_message",
                "tool_call": CALL,
                "tool_calls": [CALL, CALL | {"tool_call_id": "c2"}],
            },
        ),
        (
            _answered(
                _approved(tool_call_id="c1", approve=False, reason="too dear"),
                message_pb2.Answer(tool_return=message_pb2.ToolReturn(**RETURN, name="f", captures=True)),
            ),
            {
                "message_type": "approval_response_message",
                "approvals": [
                    {"type": "approval", "tool_call_id": "c1", "approve": False, "reason": "too dear"},
                    {"type": "tool", **RETURN},
                ],
                "approve": False,
                "approval_request_id": "c1",
                "reason": "too dear",
            },
        ),
        (
            _answered(_approved(approve=True)),
            {"message_type": "approval_response_message", "approvals": [], **NO_ANSWER, "approve": True},
        ),
        (
            _answered(_approved(approve=True, request_id="message-2")),
            {
                "message_type": "approval_response_message",
                "approvals": [],
                "approve": True,
                "approval_request_id": "message-2",
                "reason": None,
            },
        ),
        (
            _answered(message_pb2.Answer(tool_return=message_pb2.ToolReturn(**RETURN, captures=True))),
            {"message_type": "approval_response_message", "approvals": [{"type": "tool", **RETURN}], **NO_ANSWER},
        ),
        (
            {
                "summary_message": message_pb2.SummaryMessage(
                    summary="so far",
                    compaction_stats=message_pb2.CompactionStats(
                        trigger="manual",
                        context_tokens_before=900,
                        context_window=1_000,
                        messages_count_before=9,
                        messages_count_after=2,
                    ),
                )
            },
            {
                "message_type": "summary_message",
                "summary": "so far",
                "compaction_stats": {
                    "trigger": "manual",
                    "context_tokens_before": 900,
                    "context_tokens_after": None,
                    "context_window": 1_000,
                    "messages_count_before": 9,
                    "messages_count_after": 2,
                },
            },
        ),
        (
            {"summary_message": message_pb2.SummaryMessage(summary="so far")},
            {"message_type": "summary_message", "summary": "so far", "compaction_stats": None},
        ),
        (
            {
                "event_message": message_pb2.EventMessage(
                    event_type="compaction",
                    trigger="post_step_context_check",
                    context_window=1_000,
                    messages_count=9,
                )
            },
            {
                "message_type": "event_message",
                "event_type": "compaction",
                "event_data": {
                    "trigger": "post_step_context_check",
                    "context_token_estimate": None,
                    "context_window": 1_000,
                    "messages_count": 9,
                },
            },
        ),
    ],
)
def test_each_kind(fields: dict[str, Any], expected: dict[str, Any]) -> None:
    shown = message(message_pb2.Message(id="message-1", date=NOON, **fields))
    assert shown == COMMON | expected
    # The SDK does not validate what it reads; this does.
    typed = TYPES[shown["message_type"]].model_validate(shown)
    assert not typed.model_extra


def test_every_kind_has_a_type_of_the_sdk() -> None:
    assert set(TYPES) == {field.name for field in message_pb2.Message.DESCRIPTOR.oneofs_by_name["message"].fields}


@pytest.mark.parametrize(
    ("asked", "compaction", "types"),
    [
        (None, False, SAID),
        (None, True, SAID | {"summary_message", "event_message"}),
        (["assistant_message", "user_message"], False, {"assistant_message"}),
        (["summary_message"], False, set()),
        (["summary_message"], True, {"summary_message"}),
        (list(TYPES), False, SAID),
        ([], True, set()),
    ],
)
def test_what_an_answer_holds(asked: list[str] | None, compaction: bool, types: set[str]) -> None:
    assert answer_types(asked, compaction=compaction) == types


def test_a_position_in_a_stream_is_not_shown_unless_the_stream_can_be_resumed() -> None:
    source = message_pb2.Message(id="message-1", date=NOON, seq_id=5, assistant_message=message_pb2.AssistantMessage())
    assert message(source)["seq_id"] is None


def test_why_a_turn_stopped() -> None:
    end = message_service_pb2.TurnEnd(stop_reason=agent_pb2.STOP_REASON_MAX_STEPS)
    assert stop_reason(end) == {"message_type": "stop_reason", "stop_reason": "max_steps"}
    assert stop_reason(message_service_pb2.TurnEnd())["stop_reason"] == "error"


def test_what_a_turn_cost() -> None:
    usage = usage_statistics(message_service_pb2.TurnUsage(completion_tokens=1, context_tokens=9))
    assert set(usage) == {
        "message_type", "completion_tokens", "prompt_tokens", "total_tokens", "step_count", "run_ids",
        "cached_input_tokens", "cache_write_tokens", "reasoning_tokens", "context_tokens",
    }  # fmt: skip
    assert (usage["completion_tokens"], usage["context_tokens"], usage["cached_input_tokens"]) == (1, 9, None)
