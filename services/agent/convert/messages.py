"""Stored messages -> protobuf, as clients see them."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import assert_never
from uuid import UUID

from loci.agent.v1 import message_pb2
from services.agent.convert.parts import content_to_proto, decision_to_proto, return_to_proto
from services.agent.core.events import Compacting, Delta, MessagePiece
from services.agent.core.messages import (
    Call,
    Decision,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
    delta_id,
    piece_id,
    pieces,
    system_message_id,
)
from services.agent.core.summaries.summary import unpack
from services.agent.core.turn import step_id
from services.common.ids import to_public, uuid7
from services.common.timestamps import timestamp


def event_to_message(event: Compacting) -> message_pb2.Message:
    """Returns the message that announces a compaction."""
    return message_pb2.Message(
        id=to_public("message", uuid7()),
        date=timestamp(datetime.now(UTC)),
        run_id=to_public("run", event.run_id),
        step_id=to_public("step", event.step_id),
        seq_id=event.sequence,
        event_message=message_pb2.EventMessage(
            event_type="compaction",
            trigger=event.trigger.value,
            context_token_estimate=event.context_tokens,
            context_window=event.window,
            messages_count=event.messages,
        ),
    )


def messages_to_proto(message: Message) -> list[message_pb2.Message]:
    """Returns a stored message as clients see it: one for each of its pieces."""
    return [_piece(message, otid, parts) for otid, parts in pieces(message)]


def system_message_to_proto(conversation_id: UUID, prompt: str, created_at: datetime) -> message_pb2.Message:
    """Returns the compiled prompt, shown as the first message of its conversation."""
    return message_pb2.Message(
        id=to_public("message", system_message_id(conversation_id)),
        date=timestamp(created_at),
        system_message=message_pb2.SystemMessage(content=prompt),
    )


def piece_to_proto(event: MessagePiece) -> message_pb2.Message:
    """Returns a durable piece in a stream."""
    piece = _piece(event.message, event.otid, event.parts)
    piece.seq_id = event.sequence
    return piece


def delta_to_proto(event: Delta, run_id: UUID) -> message_pb2.Message:
    """Returns a delta in a stream."""
    wire = message_pb2.Message(
        id=to_public("message", delta_id(event.message_id, event.part)),
        date=timestamp(datetime.now(UTC)),
        name=event.name,
        otid=event.otid,
        sender_id=event.sender_id,
        step_id=to_public("step", event.step_id),
        run_id=to_public("run", run_id),
        seq_id=event.sequence,
    )
    _put(wire, "assistant", (event.part,))
    return wire


def _piece(message: Message, otid: str, parts: Sequence[Part]) -> message_pb2.Message:
    wire = message_pb2.Message(
        id=to_public("message", piece_id(message, parts[0])),
        date=timestamp(message.created_at),
        name=message.name,
        otid=None if _is_from_outside(message) else otid,
        sender_id=message.sender_id,
        step_id=None if (step := _step_of(message)) is None else to_public("step", step),
        run_id=None if message.run_id is None else to_public("run", message.run_id),
    )
    _put(wire, message.role, parts)
    return wire


def _step_of(message: Message) -> UUID | None:
    """Returns the step that a message is shown with: what is said to an agent belongs to the first of its run."""
    if message.step_id is None and message.run_id is not None and message.role in ("user", "system"):
        return step_id(message.run_id, 1)
    return message.step_id


def _is_from_outside(message: Message) -> bool:
    """Returns whether a user said it before any run, and gave it no otid: such a message has none."""
    return message.role == "user" and message.run_id is None and message.otid is None


def _put(wire: message_pb2.Message, role: str, parts: Sequence[Part]) -> None:
    first = parts[0]
    match first:
        case Return() | Decision() if role == "approval":
            wire.approval_response_message.answers.extend(map(_answer, parts))
        case Text() if role == "summary":
            _put_summary(wire.summary_message, first.text)
        case Text() | Image() if role == "user":
            wire.user_message.content.extend(map(content_to_proto, parts))
        case Text() | Image() if role == "system":
            wire.system_message.content = _join_texts(parts)
        case Text() | Image():
            wire.assistant_message.content = _join_texts(parts)
        case Reasoning():
            wire.reasoning_message.source = "non_reasoner_model" if first.prompted else "reasoner_model"
            wire.reasoning_message.reasoning = _join_texts(parts)
            if first.signature:
                wire.reasoning_message.signature = first.signature
        case RedactedReasoning():
            wire.hidden_reasoning_message.state = "redacted"
            wire.hidden_reasoning_message.hidden_reasoning = first.data
        case Call():
            calls = (part for part in parts if isinstance(part, Call))
            into = wire.approval_request_message if first.gate else wire.tool_call_message
            into.tool_calls.extend(map(_call, calls))
        case Return():
            returns = [part for part in parts if isinstance(part, Return)]
            # What the client answered has no tool of ours.
            wire.name = next((part.name for part in returns if not part.by_client), "")
            wire.tool_return_message.tool_returns.extend(map(_return, returns))
        case Decision():
            raise ValueError("a decision stands in a message of role approval only")
        case _:
            assert_never(first)


def _join_texts(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Text | Reasoning))


def _call(call: Call) -> message_pb2.ToolCall:
    return message_pb2.ToolCall(name=call.name, arguments=call.arguments, tool_call_id=call.id)


def _answer(part: Part) -> message_pb2.Answer:
    if isinstance(part, Return):
        return message_pb2.Answer(tool_return=_return(part))
    assert isinstance(part, Decision)
    return message_pb2.Answer(decision=decision_to_proto(part))


def _put_summary(wire: message_pb2.SummaryMessage, text: str) -> None:
    summary, stats = unpack(text) or (text, None)
    wire.summary = summary
    if stats is not None:
        wire.compaction_stats.CopyFrom(message_pb2.CompactionStats(**asdict(stats)))


def _return(returned: Return) -> message_pb2.ToolReturn:
    return return_to_proto(returned, (Text(returned.text), *returned.images) if returned.images else ())
