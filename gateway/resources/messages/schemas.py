"""Messages and turns."""

from gateway.openapi.schemas import (
    ANY,
    FLAG,
    MOMENT,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    array,
    by_name,
    choice,
    context_of,
    maybe,
    members_of,
    names_of,
    of,
    record,
    some,
)
from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2


def _without(members: dict[str, Schema], name: str) -> dict[str, Schema]:
    return {key: schema for key, schema in members.items() if key != name}


_TEXT_PART = record("TextPart", {"type": choice("text"), "text": TEXT})
_IMAGE_PART = record(
    "ImagePart",
    {
        "type": choice("image"),
        "source": some(
            record("UrlImage", {"type": choice("url"), "url": TEXT}),
            record(
                "Base64Image",
                {"type": choice("base64"), "media_type": TEXT, "data": TEXT, "detail": maybe(TEXT)},
            ),
        ),
    },
)
_PARTS = some(TEXT, array(some(_TEXT_PART, _IMAGE_PART)))
# A piece of a call while it is streamed holds what has come.
_CALL = record("ToolCall", {"name": TEXT, "arguments": TEXT, "tool_call_id": TEXT}, optional=("name", "arguments"))
_RETURN = record(
    "ToolReturn",
    {
        "type": choice("tool"),
        "tool_call_id": TEXT,
        "status": choice("success", "error"),
        "tool_return": _PARTS,
        "stdout": maybe(array(TEXT)),
        "stderr": maybe(array(TEXT)),
    },
)
_DECISION = record(
    "ApprovalReturn",
    {"type": choice("approval"), **_without(members_of(message_pb2.Decision.DESCRIPTOR), "request_id")},
)


def _kind(name: str, message_type: str, members: dict[str, Schema], deprecated: tuple[str, ...] = ()) -> Schema:
    common: dict[str, Schema] = {
        "id": TEXT,
        "date": MOMENT,
        "message_type": choice(message_type),
        **dict.fromkeys(("name", "otid", "sender_id", "step_id", "run_id"), maybe(TEXT)),
        "is_err": maybe(FLAG),
        "seq_id": maybe(WHOLE),
    }
    return record(name, common | members, deprecated=deprecated)


_CALLS = {"tool_call": maybe(_CALL), "tool_calls": some(array(_CALL), _CALL)}
_COMPACTION = members_of(message_pb2.EventMessage.DESCRIPTOR)
MESSAGES = (
    _kind("SystemMessage", "system_message", members_of(message_pb2.SystemMessage.DESCRIPTOR)),
    _kind("UserMessage", "user_message", {"content": _PARTS}),
    _kind("ReasoningMessage", "reasoning_message", members_of(message_pb2.ReasoningMessage.DESCRIPTOR)),
    _kind(
        "HiddenReasoningMessage",
        "hidden_reasoning_message",
        members_of(message_pb2.HiddenReasoningMessage.DESCRIPTOR),
    ),
    _kind("AssistantMessage", "assistant_message", {"content": _PARTS}),
    _kind("ToolCallMessage", "tool_call_message", _CALLS, ("tool_call",)),
    _kind(
        "ToolReturnMessage",
        "tool_return_message",
        {
            "tool_return": maybe(TEXT),
            "status": choice("success", "error", None),
            "tool_call_id": maybe(TEXT),
            "stdout": maybe(array(TEXT)),
            "stderr": maybe(array(TEXT)),
            "tool_returns": array(_RETURN),
        },
        ("tool_return", "status", "tool_call_id", "stdout", "stderr"),
    ),
    _kind("ApprovalRequestMessage", "approval_request_message", _CALLS, ("tool_call",)),
    _kind(
        "ApprovalResponseMessage",
        "approval_response_message",
        {
            "approvals": array(some(_RETURN, _DECISION)),
            "approve": maybe(FLAG),
            "approval_request_id": maybe(TEXT),
            "reason": maybe(TEXT),
        },
        ("approve", "approval_request_id", "reason"),
    ),
    _kind("SummaryMessage", "summary_message", members_of(message_pb2.SummaryMessage.DESCRIPTOR)),
    _kind(
        "EventMessage",
        "event_message",
        {
            "event_type": _COMPACTION["event_type"],
            "event_data": record("EventData", _without(_COMPACTION, "event_type")),
        },
    ),
)
MESSAGE: Schema = {"anyOf": list(MESSAGES)}
TOOL_RETURN, APPROVAL_REQUEST = MESSAGES[6], MESSAGES[7]
STOP_REASON = record(
    "StopReason",
    {"message_type": choice("stop_reason"), "stop_reason": names_of(agent_pb2.StopReason.DESCRIPTOR)},
)
USAGE = of(
    "UsageStatistics",
    message_service_pb2.TurnUsage.DESCRIPTOR,
    message_type=choice("usage_statistics"),
    run_ids=maybe(array(TEXT)),
)
TURN = record(
    "LettaResponse",
    {
        "messages": array(MESSAGE),
        "stop_reason": STOP_REASON,
        "usage": USAGE,
        "logprobs": ANY,
        "turns": maybe(array(OBJECT)),
    },
)
PING = _kind("Ping", "ping", {})
ERROR = record(
    "ErrorMessage",
    {
        "message_type": choice("error_message"),
        "run_id": maybe(TEXT),
        "error_type": TEXT,
        "message": TEXT,
        "detail": maybe(TEXT),
        "seq_id": maybe(WHOLE),
    },
)
# What stands in the `data:` of one event.
EVENT: Schema = {"anyOf": [*MESSAGES, STOP_REASON, USAGE, PING, ERROR]}
_FOUND: dict[str, Schema] = {
    "message_type": TEXT,
    "message_id": TEXT,
    "content": maybe(_PARTS),
    "agent_id": maybe(TEXT),
    "conversation_id": maybe(TEXT),
    "created_at": MOMENT,
}
FOUND = record(
    "MessageSearchResult",
    _FOUND | {"context": context_of("MessageContext", record("MessageNeighbour", _FOUND))},
    optional=("context",),
)
COMPACTED = record(
    "CompactionResponse",
    {"summary": TEXT, "num_messages_before": WHOLE, "num_messages_after": WHOLE},
)
FATES = by_name(choice("cancelled", "failed"))
