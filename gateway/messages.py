"""Messages as REST shows them: common fields, and beside them those of the message's kind."""

import base64
from typing import Any, assert_never

from gateway.convert import Rest, to_rest, whole_second
from loci.agent.v1 import message_pb2, message_service_pb2

# What agents say; the other kinds are what they were told, which no turn's answer repeats.
SAID = frozenset(
    {
        "reasoning_message",
        "hidden_reasoning_message",
        "assistant_message",
        "tool_call_message",
        "tool_return_message",
    }
)
COMMON = ("name", "otid", "sender_id", "step_id", "run_id")


def message_type(message: message_pb2.Message) -> str:
    """The REST `message_type`; empty for a kind this gateway does not know."""
    return message.WhichOneof("message") or ""


def message(source: message_pb2.Message) -> Rest:
    """A whole message."""
    return head(source) | _content(source)


def head(source: message_pb2.Message) -> Rest:
    """The fields that all kinds share."""
    rest: Rest = {"id": source.id, "date": whole_second(source.date), "message_type": message_type(source)}
    for name in COMMON:
        # Each is a text, and none has a meaning when it is empty.
        rest[name] = getattr(source, name) or None
    rest["is_err"] = True if source.is_err else None
    # Streams that may be resumed number their chunks; see `sse.py`.
    rest["seq_id"] = None
    return rest


def _content(source: message_pb2.Message) -> Rest:
    match source.WhichOneof("message"):
        case "user_message":
            return {"content": _user_content(source.user_message)}
        case "tool_call_message":
            calls = [to_rest(call) for call in source.tool_call_message.tool_calls]
            return {"tool_call": calls[0] if calls else None, "tool_calls": calls}
        case "tool_return_message":
            return _returns(source.tool_return_message)
        case "system_message":
            return to_rest(source.system_message)
        case "reasoning_message":
            return to_rest(source.reasoning_message)
        case "hidden_reasoning_message":
            return to_rest(source.hidden_reasoning_message)
        case "assistant_message":
            return to_rest(source.assistant_message)
        case None:
            return {}
        case other:
            assert_never(other)


def _user_content(source: message_pb2.UserMessage) -> Any:
    parts = [_part(part) for part in source.content]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return parts


def _part(part: message_pb2.ContentPart) -> Rest:
    if part.WhichOneof("part") != "image":
        return {"type": "text", "text": part.text}
    if part.image.WhichOneof("source") == "url":
        return {"type": "image", "source": {"type": "url", "url": part.image.url}}
    data = base64.b64encode(part.image.data).decode()
    source = {"type": "base64", "media_type": part.image.media_type, "data": data, "detail": None}
    return {"type": "image", "source": source}


def _returns(source: message_pb2.ToolReturnMessage) -> Rest:
    returns = [to_rest(one) | {"type": "tool"} for one in source.tool_returns]
    for one in returns:
        del one["name"]
    names = ("tool_return", "status", "tool_call_id", "stdout", "stderr")
    first = returns[0] if returns else dict.fromkeys(names)
    return {name: first[name] for name in names} | {"tool_returns": returns}


def stop_reason(end: message_service_pb2.TurnEnd) -> Rest:
    """How a turn ended, as the last but one thing that is said of it."""
    return {"message_type": "stop_reason", "stop_reason": to_rest(end)["stop_reason"] or "error"}


def usage_statistics(usage: message_service_pb2.TurnUsage) -> Rest:
    """What a turn cost. `run_ids` names runs of background agents, of which there are none."""
    return {"message_type": "usage_statistics", **to_rest(usage), "run_ids": None}
