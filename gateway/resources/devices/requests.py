"""Remote devices: how they register, and what they are told."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Discriminator, Field, Tag

from gateway.rest.body import Body, Json

_NAME = Field(min_length=1, max_length=256)


class RegisterDevice(Body):
    """Body of a device that registers: its own name for itself, a name for people, what it says of itself."""

    device_id: Annotated[str, _NAME] = Field(validation_alias=AliasChoices("deviceId", "device_id"))
    connection_name: Annotated[str, _NAME] | None = Field(
        None, validation_alias=AliasChoices("connectionName", "connection_name")
    )
    source: Literal["local", "remote"] = "remote"
    metadata: Json | None = None


class DeviceText(Body):
    """Text in a message."""

    type: Literal["text"]
    text: str


class UserMessage(Body):
    """Something for the agent of the device."""

    role: Literal["user"]
    content: str | list[DeviceText]
    client_message_id: str
    otid: str | None = None


class Decision(Body):
    """Whether a call that waits may be run."""

    type: Literal["approval"] = "approval"
    tool_call_id: str
    approve: bool
    reason: str | None = None
    updated_input: Json | None = None


class DeviceToolReturn(Body):
    """The result of a call that the sender ran."""

    type: Literal["tool"] = "tool"
    tool_call_id: str
    status: Literal["success", "error"]
    tool_return: str | list[DeviceText]
    stdout: list[str] | None = None
    stderr: list[str] | None = None


def _kind_of_answer(value: Any) -> str:
    returns = "tool_return" in value if isinstance(value, dict) else isinstance(value, DeviceToolReturn)
    return "tool" if returns else "approval"


Answer = Annotated[
    Annotated[Decision, Tag("approval")] | Annotated[DeviceToolReturn, Tag("tool")], Discriminator(_kind_of_answer)
]


class DeviceApproval(Body):
    """Answers to calls that wait."""

    type: Literal["approval"]
    approvals: Annotated[list[Answer], Field(min_length=1)]


def _kind_of_message(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "approval" if kind == "approval" else "user"


Message = Annotated[
    Annotated[UserMessage, Tag("user")] | Annotated[DeviceApproval, Tag("approval")], Discriminator(_kind_of_message)
]


class SendToDevice(Body):
    """Body of environments.send_message."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=100)]
    agent_id: str | None = Field(None, max_length=256, validation_alias=AliasChoices("agentId", "agent_id"))
    conversation_id: str | None = Field(
        None, max_length=256, validation_alias=AliasChoices("conversationId", "conversation_id")
    )

    def frames(self) -> list[Json]:
        """Returns the frames for the device: neighbouring messages in one, each answer in one of its own."""
        payloads: list[Json] = []
        for message in self.messages:
            if isinstance(message, DeviceApproval):
                payloads += map(_answer, message.approvals)
            elif payloads and payloads[-1]["kind"] == "create_message":
                payloads[-1]["messages"].append(_said(message))
            else:
                payloads.append({"kind": "create_message", "messages": [_said(message)]})
        runtime = {"agent_id": self.agent_id, "conversation_id": self.conversation_id or "default"}
        return [{"type": "input", "runtime": runtime, "payload": payload} for payload in payloads]


def _said(message: UserMessage) -> Json:
    return message.model_dump(exclude_none=True)


def _answer(answer: Decision | DeviceToolReturn) -> Json:
    if isinstance(answer, DeviceToolReturn):
        return {"kind": "tool_return", **answer.model_dump(exclude_none=True)}
    decision: Json = {"behavior": "allow" if answer.approve else "deny"}
    if answer.reason is not None or not answer.approve:
        decision["message"] = answer.reason or ""
    if answer.updated_input is not None:
        decision["updated_input"] = answer.updated_input
    # As the terminal client names what it asks for.
    return {"kind": "approval_response", "request_id": f"perm-{answer.tool_call_id}", "decision": decision}
