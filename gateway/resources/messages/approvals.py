"""Answers to calls that wait for the client: whether a call may run, or what the client's own tool returned."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from gateway.resources.messages.content import Content, parts
from gateway.rest.body import Body
from loci.agent.v1 import message_pb2
from services.common.errors import InvalidArgument


class Approval(Body):
    """Whether one call may run; `reason` is for the model, when it may not."""

    type: Literal["approval"] = "approval"
    tool_call_id: Annotated[str, Field(min_length=1)]
    approve: bool
    reason: str | None = None


class ToolReturn(Body):
    """The return of a client's tool, as text or as text and pictures."""

    type: Literal["tool"] = "tool"
    tool_call_id: Annotated[str, Field(min_length=1)]
    tool_return: Content
    status: Literal["success", "error"]
    stdout: list[str] | None = None
    stderr: list[str] | None = None


def _kind(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if kind is None and isinstance(value, dict):
        return "tool" if "tool_return" in value else "approval"
    return "tool" if kind == "tool" else "approval"


Answer = Annotated[
    Annotated[Approval, Tag("approval")] | Annotated[ToolReturn, Tag("tool")],
    Discriminator(_kind),
]


class ApprovalCreate(Body):
    """Answers to calls that wait. `approve` and `reason` beside the list are the older form: one answer for all."""

    type: Literal["approval"] = "approval"
    approvals: list[Answer] | None = None
    approve: bool | None = None
    # The message that asked; of the older form, too.
    approval_request_id: str | None = None
    reason: str | None = None
    otid: str | None = None


class ToolReturnCreate(Body):
    """The returns of the client's own tools: an approval that holds nothing else."""

    type: Literal["tool_return"] = "tool_return"
    tool_returns: Annotated[list[ToolReturn], Field(min_length=1)]
    otid: str | None = None


def input_message(entry: ApprovalCreate | ToolReturnCreate) -> message_pb2.InputMessage:
    """Returns the message that holds these answers. Raises InvalidRequest, InvalidArgument (APPROVAL_INVALID)."""
    answers: list[message_pb2.Answer]
    if isinstance(entry, ToolReturnCreate):
        answers = [_answer(one) for one in entry.tool_returns]
    elif entry.approvals:
        answers = [_answer(one) for one in entry.approvals]
    elif entry.approve is None:
        sentence = "Invalid approval response: it needs `approvals` with at least one answer, or `approve`."
        raise InvalidArgument(sentence, reason="APPROVAL_INVALID")
    else:
        decision = message_pb2.Decision(
            approve=bool(entry.approve), reason=entry.reason, request_id=entry.approval_request_id or ""
        )
        answers = [message_pb2.Answer(decision=decision)]
    return message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_APPROVAL, otid=entry.otid, answers=answers)


def _answer(entry: Approval | ToolReturn) -> message_pb2.Answer:
    if isinstance(entry, Approval):
        decision = message_pb2.Decision(tool_call_id=entry.tool_call_id, approve=entry.approve, reason=entry.reason)
        return message_pb2.Answer(decision=decision)
    content = parts(entry.tool_return)
    pictures = any(part.HasField("image") for part in content)
    return message_pb2.Answer(
        tool_return=message_pb2.ToolReturn(
            tool_call_id=entry.tool_call_id,
            status=entry.status,
            tool_return="\n".join(part.text for part in content if part.HasField("text")),
            stdout=entry.stdout,
            stderr=entry.stderr,
            content=content if pictures else None,
            captures=entry.stdout is not None or entry.stderr is not None,
        )
    )
