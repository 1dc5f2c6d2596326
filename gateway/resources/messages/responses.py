"""Messages as REST shows them: common fields, and beside them those of the message's kind."""

from collections.abc import Collection, Sequence
from typing import assert_never

from gateway.resources.messages.content import content_to_rest, part_to_rest
from gateway.rest.convert import Rest, to_rest, whole_second
from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2
from services.common.fields import enum_names

# What agents say; the other kinds are what they were told, which no turn's answer repeats.
SAID = frozenset(
    {
        "reasoning_message",
        "hidden_reasoning_message",
        "assistant_message",
        "tool_call_message",
        "tool_return_message",
        "approval_request_message",
    }
)
# What happens to the window: told in a turn's answer to those who ask for it.
OF_COMPACTION = frozenset({"summary_message", "event_message"})
COMMON = ("name", "otid", "sender_id", "step_id", "run_id")


def answer_types(names: Collection[str] | None = None, *, compaction: bool = False) -> frozenset[str]:
    """Returns the message_types of a turn's answer; `names`: the client's filter, None for all."""
    types = SAID | OF_COMPACTION if compaction else SAID
    return types if names is None else types.intersection(names)


def message_type(message: message_pb2.Message) -> str:
    """Returns the REST `message_type`; empty for a kind this gateway does not know."""
    return message.WhichOneof("message") or ""


def message(source: message_pb2.Message) -> Rest:
    """Returns a whole message."""
    return head(source) | _content(source)


def head(source: message_pb2.Message) -> Rest:
    """Returns the fields that all kinds share."""
    rest: Rest = {"id": source.id, "date": whole_second(source.date), "message_type": message_type(source)}
    for name in COMMON:
        # Each is a text, and none has a meaning when it is empty.
        rest[name] = getattr(source, name) or None
    # The reference leaves it null, whatever fails: returns have a status.
    rest["is_err"] = None
    # Streams that may be resumed number their chunks; see `sse.py`.
    rest["seq_id"] = None
    return rest


def _content(source: message_pb2.Message) -> Rest:
    match source.WhichOneof("message"):
        case "user_message":
            return {"content": content_to_rest(source.user_message.content)}
        case "tool_call_message" | "approval_request_message":
            calls = [to_rest(call) for call in calls_of(source)]
            return {"tool_call": calls[0] if calls else None, "tool_calls": calls}
        case "approval_response_message":
            return _answers(source.approval_response_message)
        case "summary_message":
            return to_rest(source.summary_message)
        case "event_message":
            return _event(source.event_message)
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


def calls_of(source: message_pb2.Message) -> Sequence[message_pb2.ToolCall]:
    """Returns the calls in a message that asks for calls, whether they run or wait."""
    if source.WhichOneof("message") == "approval_request_message":
        return source.approval_request_message.tool_calls
    return source.tool_call_message.tool_calls


def _returns(source: message_pb2.ToolReturnMessage) -> Rest:
    returns = [_return(one) for one in source.tool_returns]
    # The deprecated fields beside the list say the same of the first return, without its pictures.
    first = returns[0] if returns else dict.fromkeys(("status", "tool_call_id", "stdout", "stderr"))
    alone = {name: first[name] for name in ("status", "tool_call_id", "stdout", "stderr")}
    text = source.tool_returns[0].tool_return if returns else None
    return alone | {"tool_return": text, "tool_returns": returns}


def _return(source: message_pb2.ToolReturn) -> Rest:
    return {
        "type": "tool",
        "tool_call_id": source.tool_call_id,
        "status": source.status,
        "tool_return": [part_to_rest(part) for part in source.content] or source.tool_return,
        # Where nothing is captured, nothing is null; the error of such a tool is told all the same.
        "stdout": list(source.stdout) if source.stdout or source.captures else None,
        "stderr": list(source.stderr) if source.stderr or source.captures else None,
    }


def _answers(source: message_pb2.ApprovalResponseMessage) -> Rest:
    decisions = [one.decision for one in source.answers if one.HasField("decision")]
    first = to_rest(decisions[0]) if decisions else {}
    # The older form, one answer for all calls, names none of them: it is told by the deprecated fields alone.
    named = [_answer(one) for one in source.answers if one.HasField("tool_return") or one.decision.tool_call_id]
    # The reference has the call there, unless the answer named a request.
    request_id = first.get("request_id") or first.get("tool_call_id") or None
    deprecated = {"approve": first.get("approve"), "approval_request_id": request_id, "reason": first.get("reason")}
    return {"approvals": named} | deprecated


def _answer(source: message_pb2.Answer) -> Rest:
    if source.HasField("tool_return"):
        return _return(source.tool_return)
    # Which request it was for is told beside the list.
    decision = to_rest(source.decision)
    del decision["request_id"]
    return {"type": "approval", **decision}


def _event(source: message_pb2.EventMessage) -> Rest:
    data = to_rest(source)
    return {"event_type": data.pop("event_type"), "event_data": data}


def stop_reason(end: message_service_pb2.TurnEnd) -> Rest:
    """Returns the stop_reason content, the last but one of a turn."""
    names = enum_names(agent_pb2.StopReason.DESCRIPTOR)
    return {"message_type": "stop_reason", "stop_reason": names.get(end.stop_reason) or "error"}


def usage_statistics(usage: message_service_pb2.TurnUsage, *, by_tokens: bool = False) -> Rest:
    """Returns the usage_statistics content of a turn; `run_ids`: of those that tend its memory, null for none.

    `by_tokens`: it was streamed so. Elsewhere the reference says 0 for what a provider does not count.
    """
    rest = {"message_type": "usage_statistics", **to_rest(usage), "run_ids": list(usage.run_ids) or None}
    return rest if by_tokens else rest | {"cache_write_tokens": rest["cache_write_tokens"] or 0}
