"""Sending messages: the request of a turn, its input and what it alone wants."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, ConfigDict, Discriminator, Field, Tag, model_validator

from gateway.errors.invalid import InvalidRequest
from gateway.resources.messages import approvals
from gateway.resources.messages.approvals import ApprovalCreate, ToolReturnCreate
from gateway.resources.messages.content import Content, parts
from gateway.rest import old_names
from gateway.rest.body import Body, Int32, Json, LenientBody, deprecated, dump
from gateway.rest.old_names import BodyWithOldNames
from gateway.rest.params import AgentInBody, RunInBody
from loci.agent.v1 import message_pb2, message_service_pb2

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
_ROLES: Mapping[str, message_pb2.MessageRole.ValueType] = {
    "user": message_pb2.MESSAGE_ROLE_USER,
    "system": message_pb2.MESSAGE_ROLE_SYSTEM,
    "assistant": message_pb2.MESSAGE_ROLE_ASSISTANT,
}
_BUSY: Mapping[str, message_service_pb2.OnBusy.ValueType] = {
    "wait": message_service_pb2.ON_BUSY_WAIT,
    "reject": message_service_pb2.ON_BUSY_REJECT,
    "interrupt": message_service_pb2.ON_BUSY_INTERRUPT,
}


class MessageCreate(BodyWithOldNames):
    """A message from outside."""

    old_names = old_names.MESSAGE
    type: Literal["message"] | None = None
    role: Literal["user", "system", "assistant"]
    content: Content
    name: str | None = None
    otid: str | None = None
    sender_id: str | None = None


def _kind_of_message(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    if kind is None and isinstance(value, dict):
        if "tool_returns" in value:
            return "tool_return"
        return "message" if value.keys().isdisjoint(_ANSWERS) else "approval"
    return kind if kind in ("approval", "tool_return") else "message"


_ANSWERS = frozenset({"approvals", "approve", "approval_request_id"})
InputMessage = Annotated[
    Annotated[MessageCreate, Tag("message")]
    | Annotated[ApprovalCreate, Tag("approval")]
    | Annotated[ToolReturnCreate, Tag("tool_return")],
    Discriminator(_kind_of_message),
]


class ClientTool(Body):
    """A tool that the client runs; it hides a server tool of the same name for this request."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str | None = None
    parameters: Json | None = None


class ClientSkill(Body):
    """Something that the client's agent can look up; told in this request's prompt only."""

    name: str
    description: str
    location: str


class TurnFields(BodyWithOldNames, LenientBody):
    """Fields of every request for a turn, however it is sent and answered.

    Loci's own: `response_format` stands for this request in place of the agent's, `on_busy` says what to do when the
    conversation is busy with another request (wait in line, reject with 409, or interrupt that one; default: the
    server's setting), `include_trace` keeps the requests to the provider and its answers (as the header
    `X-Loci-Include-Trace: 1` does).
    """

    old_names = old_names.TURN
    max_steps: Annotated[Int32, Field(ge=1)] = 50
    include_return_message_types: list[MessageTypeName] | None = None
    include_compaction_messages: bool = False
    client_tools: list[ClientTool] | None = None
    client_skills: list[ClientSkill] | None = None
    override_model: str | None = None
    # The reference's server also calls it system.
    override_system: str | None = Field(None, validation_alias=AliasChoices("override_system", "system"))
    return_logprobs: bool = False
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    return_token_ids: bool = False
    use_assistant_message: bool = deprecated(True)
    assistant_message_tool_name: str = deprecated("send_message")
    assistant_message_tool_kwarg: str = deprecated("message")
    enable_thinking: str | bool | None = deprecated()
    response_format: Json | None = None
    on_busy: Literal["wait", "reject", "interrupt"] | None = None
    include_trace: bool = False

    def input_messages(self) -> list[message_pb2.InputMessage]:
        """Returns the messages to the agent. Raises InvalidRequest."""
        raise NotImplementedError

    def options(self) -> message_service_pb2.TurnOptions:
        """Returns the options of this request alone."""
        return message_service_pb2.TurnOptions(
            # An empty handle or prompt asks for nothing.
            override_model=self.override_model or None,
            override_system=self.override_system or None,
            client_tools=[_client_tool(tool) for tool in self.client_tools or ()],
            client_skills=[
                message_service_pb2.ClientSkill(name=skill.name, description=skill.description, location=skill.location)
                for skill in self.client_skills or ()
            ],
            return_logprobs=self.return_logprobs,
            top_logprobs=self.top_logprobs,
            return_token_ids=self.return_token_ids,
            include_trace=self.include_trace,
            response_format_json=dump(self.response_format) if self.response_format else "",
        )

    def busy(self) -> message_service_pb2.OnBusy.ValueType:
        """Returns the choice for a conversation that is busy."""
        return _BUSY.get(self.on_busy or "", message_service_pb2.ON_BUSY_UNSPECIFIED)


class TurnBody(TurnFields):
    """A request for a turn, with what is said in it."""

    messages: list[InputMessage] | None = None
    input: Content | None = None

    @model_validator(mode="after")
    def _one_input(self) -> "TurnBody":
        if (self.messages is None) == (self.input is None):
            raise ValueError("give exactly one of `messages` and `input`")
        if self.messages == [] or self.input == []:
            raise ValueError("`messages` must not be empty")
        return self

    def input_messages(self) -> list[message_pb2.InputMessage]:
        """Returns the messages to the agent. Raises InvalidRequest."""
        if self.input is not None:
            return [message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_USER, content=parts(self.input))]
        return [_input_message(entry) for entry in self.messages or ()]


class SendMessages(TurnBody):
    """Body of agents.messages.create and .stream: a turn that is waited for, or streamed."""

    streaming: bool = False
    stream_tokens: bool = False
    include_pings: bool = True
    background: bool = False

    def check(self, *, streams: bool) -> None:
        """Raises InvalidRequest for what does not fit together; `streams`: it is answered by SSE."""
        if streams:
            return
        for name, value in (("stream_tokens", self.stream_tokens), ("background", self.background)):
            if value:
                raise InvalidRequest(f"`{name}` needs streaming=true", "body", name)
        if not self.include_pings:
            raise InvalidRequest("`include_pings` has a meaning with streaming=true only", "body", "include_pings")


class SendInBackground(TurnBody):
    """Body of agents.messages.create_async."""

    callback_url: str | None = None


class CancelRuns(Body):
    """Body of agents.messages.cancel."""

    run_ids: list[str] | None = None


class CompactionSettings(Body):
    """How windows are compacted; in a change, what is not sent stays."""

    model_config = ConfigDict(extra="allow")

    mode: Literal["all", "sliding_window", "self_compact_all", "self_compact_sliding_window"] | None = None


class Compact(Body):
    """Body of agents.messages.compact: settings over the agent's own, for this once."""

    compaction_settings: CompactionSettings | None = None

    @property
    def settings_json(self) -> str:
        """The settings as a `*_json` field; empty for none."""
        settings = self.compaction_settings
        return "" if settings is None else dump(settings.model_dump(exclude_unset=True))


class AttachRun(Body):
    """Body of runs.messages.stream, where the run is that of the path, and of conversations.messages.stream.

    How often and how much is read of a stored stream is not the client's to say: it is told what comes when it comes.
    The last three are Loci's own, and as the request that began the run had them where they are not given.
    """

    starting_after: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    include_pings: bool | None = True
    run_id: RunInBody = None
    otid: str | None = None
    agent_id: AgentInBody = None
    batch_size: Annotated[int, Field(ge=1)] | None = None
    poll_interval: Annotated[float, Field(ge=0)] | None = None
    stream_tokens: bool | None = None
    include_compaction_messages: bool | None = None
    use_assistant_message: bool | None = None


def _input_message(entry: MessageCreate | ApprovalCreate | ToolReturnCreate) -> message_pb2.InputMessage:
    if not isinstance(entry, MessageCreate):
        return approvals.input_message(entry)
    return message_pb2.InputMessage(
        role=_ROLES[entry.role],
        content=parts(entry.content),
        name=entry.name,
        otid=entry.otid,
        sender_id=entry.sender_id,
    )


def _client_tool(tool: ClientTool) -> message_service_pb2.ClientTool:
    schema = "" if tool.parameters is None else dump(tool.parameters)
    return message_service_pb2.ClientTool(name=tool.name, description=tool.description or "", parameters_json=schema)
