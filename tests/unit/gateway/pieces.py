"""Messages and events in short, for tables."""

from __future__ import annotations

from typing import Any

from loci.agent.v1 import message_pb2, message_service_pb2


def text(content: str, *, number: int = 1, otid: str = "o-1") -> message_pb2.Message:
    """Something an agent said."""
    return message_pb2.Message(
        id=f"message-{number}",
        otid=otid,
        step_id=f"step-{number}",
        assistant_message=message_pb2.AssistantMessage(content=content),
    )


def thought(content: str, *, number: int = 1, otid: str = "o-0", signature: str | None = None) -> message_pb2.Message:
    """Something an agent thought."""
    reasoning = message_pb2.ReasoningMessage(reasoning=content, source="reasoner_model", signature=signature)
    return message_pb2.Message(id=f"message-{number}", otid=otid, step_id=f"step-{number}", reasoning_message=reasoning)


def calls(*made: tuple[str, str, str], number: int = 1, otid: str = "o-2") -> message_pb2.Message:
    """Calls of (id, name, arguments)."""
    found = [message_pb2.ToolCall(tool_call_id=key, name=name, arguments=given) for key, name, given in made]
    return message_pb2.Message(
        id=f"message-{number}",
        otid=otid,
        step_id=f"step-{number}",
        tool_call_message=message_pb2.ToolCallMessage(tool_calls=found),
    )


def waiting(*made: tuple[str, str, str], number: int = 1, otid: str = "o-2") -> message_pb2.Message:
    """Calls of (id, name, arguments) that wait for the client."""
    shown = calls(*made, number=number, otid=otid)
    found = list(shown.tool_call_message.tool_calls)
    shown.approval_request_message.CopyFrom(message_pb2.ApprovalRequestMessage(tool_calls=found))
    return shown


def returns(*made: tuple[str, str, str], number: int = 1) -> message_pb2.Message:
    """Returns of (call id, tool's name, status)."""
    found = [message_pb2.ToolReturn(tool_call_id=key, name=name, status=status) for key, name, status in made]
    return message_pb2.Message(
        id=f"message-{number}", tool_return_message=message_pb2.ToolReturnMessage(tool_returns=found)
    )


def event(sequence: int = 0, **fields: Any) -> message_service_pb2.TurnEvent:
    """An event of a turn."""
    return message_service_pb2.TurnEvent(sequence=sequence, **fields)
