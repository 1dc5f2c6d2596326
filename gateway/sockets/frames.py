"""The frames of a WebSocket, both ways: see docs/websocket.md."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter

from gateway.resources.messages import approvals
from gateway.resources.messages.approvals import Answer, ApprovalCreate
from gateway.resources.messages.requests import AttachRun, TurnBody, TurnFields
from gateway.rest.body import Body
from gateway.rest.params import checked_id
from loci.agent.v1 import message_pb2

FrameId = Annotated[
    str | None, Field(max_length=200, description="Chosen by the client; the answers to this frame repeat it.")
]
_Run = Annotated[str, checked_id("run")]


class Send(TurnBody):
    """Takes a turn: what a POST of messages takes, in the background."""

    type: Literal["send"]
    id: FrameId = None
    stream_tokens: bool = False


class Approve(TurnFields):
    """Answers calls that wait, with decisions or with the returns of client tools; the turn goes on."""

    type: Literal["approve"]
    id: FrameId = None
    stream_tokens: bool = False
    approvals: Annotated[list[Answer], Field(min_length=1)]
    otid: str | None = None

    def input_messages(self) -> list[message_pb2.InputMessage]:
        """Returns the answers as a message."""
        return [approvals.input_message(ApprovalCreate(approvals=self.approvals, otid=self.otid))]


class Cancel(Body):
    """Asks a run to stop; without `run_id`, all that are active here."""

    type: Literal["cancel"]
    id: FrameId = None
    run_id: _Run | None = None


class Resume(Body):
    """Goes on with a run after a `seq_id`; from its beginning without one."""

    type: Literal["resume"]
    id: FrameId = None
    run_id: _Run
    starting_after: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    stream_tokens: bool | None = None
    include_compaction_messages: bool | None = None
    use_assistant_message: bool | None = None

    def attach_run(self) -> AttachRun:
        """Returns the same as the body of a request that attaches to a run."""
        return AttachRun(**self.model_dump(exclude={"type", "id", "run_id"}))


class Ping(Body):
    """Answered with a pong."""

    type: Literal["ping"]
    id: FrameId = None


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Accepted(_Sent):
    """The answer to send, approve and resume: what follows of this run bears its id."""

    type: Literal["accepted"] = "accepted"
    id: str | None = None
    run_id: str


class Cancelling(_Sent):
    """The answer to cancel: the fate of each run, cancelled or (it had ended before) failed."""

    type: Literal["cancelling"] = "cancelling"
    id: str | None = None
    runs: dict[str, str]


class End(_Sent):
    """The last frame of a run."""

    type: Literal["end"] = "end"
    run_id: str
    stop_reason: str
    usage: dict[str, Any]


class Error(_Sent):
    """The answer that a request would have had, status and detail; `run_id` where a run's events broke off."""

    type: Literal["error"] = "error"
    id: str | None = None
    run_id: str | None = None
    status: int
    detail: Any


class Pong(_Sent):
    """The answer to ping."""

    type: Literal["pong"] = "pong"
    id: str | None = None


class Event(BaseModel):
    """An event of a stream as in server-sent events, with the run and the number after which it can go on."""

    model_config = ConfigDict(extra="allow")
    message_type: str
    run_id: str
    seq_id: int | None


ClientFrame = Annotated[Send | Approve | Cancel | Resume | Ping, Field(discriminator="type")]
CLIENT_FRAME: TypeAdapter[Send | Approve | Cancel | Resume | Ping] = TypeAdapter(ClientFrame)


def _kind(frame: Any) -> str:
    return "event" if "message_type" in frame else str(frame.get("type"))


ServerFrame = Annotated[
    Annotated[Accepted, Tag("accepted")]
    | Annotated[Cancelling, Tag("cancelling")]
    | Annotated[End, Tag("end")]
    | Annotated[Error, Tag("error")]
    | Annotated[Pong, Tag("pong")]
    | Annotated[Event, Tag("event")],
    Discriminator(_kind),
]


class Frames(BaseModel):
    """Every frame that can be sent over a socket of Loci."""

    client: ClientFrame
    server: ServerFrame
