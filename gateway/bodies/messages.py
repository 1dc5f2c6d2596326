"""Sending messages: the request of a turn, and its input."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from gateway.bodies.common import Body, Int32, Json, deprecated, refuse
from gateway.errors import InvalidRequest
from loci.agent.v1 import message_pb2
from services.common.errors import InvalidArgument

MessageTypeName = Literal[
    "system_message",
    "user_message",
    "assistant_message",
    "reasoning_message",
    "hidden_reasoning_message",
    "tool_call_message",
    "tool_return_message",
    "approval_request_message",
    "approval_response_message",
    "summary_message",
    "event_message",
]
MAX_IMAGE_BYTES = 20 * 1024 * 1024
_ROLES: Mapping[str, message_pb2.MessageRole.ValueType] = {
    "user": message_pb2.MESSAGE_ROLE_USER,
    "system": message_pb2.MESSAGE_ROLE_SYSTEM,
}
_NOT_YET: Mapping[str, str] = {
    "client_tools": "tools of the client are not available yet; leave it out",
    "client_skills": "skills of the client are not available yet; leave it out",
    "override_model": "a model for one request is not available yet; change the agent's model",
    "override_system": "a system prompt for one request is not available yet; change the agent's system",
    "return_logprobs": "log probabilities are not available yet; leave it out",
    "return_token_ids": "token ids are not available yet; leave it out",
}


class TextPart(Body):
    """Text in a message."""

    type: Literal["text"] = "text"
    text: str


class ImageSource(Body):
    """Where a picture is: an https address, or base64 with its media type."""

    type: Literal["url", "base64", "letta"] = "base64"
    url: str | None = None
    data: str | None = None
    media_type: str | None = None


class ImagePart(Body):
    """A picture in a message."""

    type: Literal["image"]
    source: ImageSource


class OtherPart(Body):
    """Parts of agents' messages, which clients do not send."""

    type: Literal[
        "tool_call",
        "tool_return",
        "reasoning",
        "redacted_reasoning",
        "omitted_reasoning",
        "summarized_reasoning",
    ]


def _kind_of_part(value: Any) -> str:
    kind = value.get("type", "text") if isinstance(value, dict) else getattr(value, "type", "text")
    return str(kind) if kind in {"text", "image"} else "other"


ContentPart = Annotated[
    Annotated[TextPart, Tag("text")] | Annotated[ImagePart, Tag("image")] | Annotated[OtherPart, Tag("other")],
    Discriminator(_kind_of_part),
]
Content = str | list[ContentPart]


class MessageCreate(Body):
    """A message from outside."""

    type: Literal["message"] | None = None
    role: Literal["user", "system", "assistant"]
    content: Content
    name: str | None = None
    otid: str | None = None
    sender_id: str | None = None


class ApprovalCreate(Body):
    """An answer to a call that waits for approval, or the return of a client's tool."""

    type: Literal["approval", "tool_return"] = "approval"
    approvals: list[Json] | None = None
    tool_returns: list[Json] | None = None


def _kind_of_message(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if kind is None and isinstance(value, dict) and not value.keys().isdisjoint(_ANSWERS):
        return "answer"
    return "answer" if kind in {"approval", "tool_return"} else "message"


_ANSWERS = frozenset({"approvals", "tool_returns", "approve", "approval_request_id"})
InputMessage = Annotated[
    Annotated[MessageCreate, Tag("message")] | Annotated[ApprovalCreate, Tag("answer")],
    Discriminator(_kind_of_message),
]


class SendMessages(Body):
    """Body of agents.messages.create and .stream."""

    messages: list[InputMessage] | None = None
    input: Content | None = None
    streaming: bool = False
    stream_tokens: bool = False
    include_pings: bool = True
    background: bool = False
    max_steps: Annotated[Int32, Field(ge=1)] = 50
    include_return_message_types: list[MessageTypeName] | None = None
    client_tools: list[Json] | None = None
    client_skills: list[Json] | None = None
    override_model: str | None = None
    override_system: str | None = Field(None, alias="system")
    include_compaction_messages: bool = False
    return_logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    return_token_ids: bool = False
    use_assistant_message: bool = deprecated(True)
    assistant_message_tool_name: str = deprecated("send_message")
    assistant_message_tool_kwarg: str = deprecated("message")
    enable_thinking: str | bool | None = deprecated()

    @model_validator(mode="before")
    @classmethod
    def _both_names(cls, value: Any) -> Any:
        # The SDK calls it override_system, the reference's server also system.
        if isinstance(value, dict) and "override_system" in value:
            return {**value, "system": value["override_system"]}
        return value

    @model_validator(mode="after")
    def _one_input(self) -> "SendMessages":
        if (self.messages is None) == (self.input is None):
            raise ValueError("give exactly one of `messages` and `input`")
        if self.messages == [] or self.input == []:
            raise ValueError("`messages` must not be empty")
        return self

    def check(self, *, streams: bool) -> None:
        """Raises InvalidRequest for what does not fit together or is not available; `streams`: by SSE."""
        refuse(self, _NOT_YET)
        if streams:
            return
        for name, asked in (("stream_tokens", self.stream_tokens), ("background", self.background)):
            if asked:
                raise InvalidRequest(f"`{name}` needs streaming=true", "body", name)
        if not self.include_pings:
            raise InvalidRequest("`include_pings` has a meaning with streaming=true only", "body", "include_pings")

    def input_messages(self) -> list[message_pb2.InputMessage]:
        """What is said to the agent. Raises InvalidRequest or InvalidArgument."""
        if self.input is not None:
            content = _parts(self.input)
            return [message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_USER, content=content)]
        return [_input_message(entry) for entry in self.messages or ()]


class CancelRuns(Body):
    """Body of agents.messages.cancel."""

    run_ids: list[str] | None = None


class AttachRun(Body):
    """Body of runs.messages.stream. The run is that of the path; `stream_tokens` is Loci's own."""

    starting_after: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    include_pings: bool | None = True
    stream_tokens: bool = True


def _input_message(entry: MessageCreate | ApprovalCreate) -> message_pb2.InputMessage:
    if isinstance(entry, ApprovalCreate):
        # Nothing asks for approval yet, so this is the reference's answer to one that nobody waits for.
        raise InvalidArgument("there is no tool call that waits for approval", reason="NO_PENDING_APPROVAL")
    role = _ROLES.get(entry.role)
    if role is None:
        raise InvalidRequest("`role`: agents speak for themselves; use user or system", "body", "messages")
    return message_pb2.InputMessage(
        role=role, content=_parts(entry.content), name=entry.name, otid=entry.otid, sender_id=entry.sender_id
    )


def _parts(content: str | Sequence[TextPart | ImagePart | OtherPart]) -> list[message_pb2.ContentPart]:
    if isinstance(content, str):
        return [message_pb2.ContentPart(text=content)]
    return [_part(part) for part in content]


def _part(part: TextPart | ImagePart | OtherPart) -> message_pb2.ContentPart:
    match part:
        case TextPart():
            return message_pb2.ContentPart(text=part.text)
        case ImagePart():
            return message_pb2.ContentPart(image=_image(part.source))
        case OtherPart():
            raise InvalidRequest(f"a client's message cannot have a part of type {part.type}", "body", "messages")


def _image(source: ImageSource) -> message_pb2.ImageContent:
    if source.type == "url" and source.url:
        if not source.url.startswith("https://"):
            raise InvalidRequest("the address of an image must begin with https://", "body", "messages")
        return message_pb2.ImageContent(url=source.url)
    if source.type != "base64" or not source.data or not source.media_type:
        raise InvalidRequest(
            "an image needs a source of type url with `url`, or of type base64 with `data` and `media_type`",
            "body",
            "messages",
        )
    try:
        data = base64.b64decode(source.data, validate=True)
    except binascii.Error:
        raise InvalidRequest("the `data` of an image is not base64", "body", "messages") from None
    if len(data) > MAX_IMAGE_BYTES:
        raise InvalidRequest("an image is larger than 20 MiB", "body", "messages")
    return message_pb2.ImageContent(data=data, media_type=source.media_type)
