"""The events of a turn, as values. Pure.

Texts and arguments are pieces where tokens are streamed; a client joins those of one `otid`, or of one call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class _Event:
    """raw: the event as it came. seq_id: the cursor after which a stream can be gone on with."""

    raw: Json = field(repr=False)

    @property
    def run_id(self) -> str | None:
        """The id of its run."""
        return self.raw.get("run_id")

    @property
    def seq_id(self) -> int | None:
        """Its number in the run."""
        return self.raw.get("seq_id")

    @property
    def otid(self) -> str | None:
        """The id of the message part that it is, or is a piece of."""
        return self.raw.get("otid")


@dataclass(frozen=True)
class AssistantMessage(_Event):
    """Text that the agent says."""

    text: str


@dataclass(frozen=True)
class ReasoningMessage(_Event):
    """Text that the agent thinks."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool, or a piece of one: then the name comes once, and arguments (JSON) bit by bit."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class ToolCallMessage(_Event):
    """Calls of tools. waits: they need an approval, or the client runs them."""

    calls: tuple[Call, ...]
    waits: bool


@dataclass(frozen=True)
class ToolReturnMessage(_Event):
    """The return of a tool."""

    call_id: str
    text: str
    failed: bool


@dataclass(frozen=True)
class AttemptAbandoned(_Event):
    """The model's reply broke off and is made again: its pieces are void, all of the step's without `message_id`."""

    step_id: str
    message_id: str | None


@dataclass(frozen=True)
class Ping(_Event):
    """The stream is alive."""


@dataclass(frozen=True)
class ErrorMessage(_Event):
    """The turn failed."""

    kind: str
    message: str
    detail: str | None


@dataclass(frozen=True)
class StopReason(_Event):
    """The reason of the turn's end."""

    reason: str


@dataclass(frozen=True)
class UsageStatistics(_Event):
    """The cost of the turn in tokens."""

    prompt: int
    completion: int
    steps: int


@dataclass(frozen=True)
class UnknownEvent(_Event):
    """An event of a kind that this client does not know."""


Event = (
    AssistantMessage
    | ReasoningMessage
    | ToolCallMessage
    | ToolReturnMessage
    | AttemptAbandoned
    | Ping
    | ErrorMessage
    | StopReason
    | UsageStatistics
    | UnknownEvent
)


def event(raw: Json) -> Event:
    """Returns the value of one event; unknown kinds are UnknownEvent."""
    match raw.get("message_type"):
        case "assistant_message":
            return AssistantMessage(raw, flat(raw.get("content")))
        case "reasoning_message":
            return ReasoningMessage(raw, str(raw.get("reasoning") or ""))
        case ("tool_call_message" | "approval_request_message") as kind:
            return ToolCallMessage(raw, tuple(map(_call, _calls(raw))), kind == "approval_request_message")
        case "tool_return_message":
            text = flat(raw.get("tool_return"))
            return ToolReturnMessage(raw, str(raw.get("tool_call_id") or ""), text, raw.get("status") != "success")
        case "ping" if isinstance(raw.get("attempt_abandoned"), dict):
            abandoned = raw["attempt_abandoned"]
            return AttemptAbandoned(raw, str(abandoned.get("step_id") or ""), abandoned.get("message_id"))
        case "ping":
            return Ping(raw)
        case "error_message":
            kind, text = str(raw.get("error_type") or "internal_error"), str(raw.get("message") or "")
            return ErrorMessage(raw, kind, text, raw.get("detail"))
        case "stop_reason":
            return StopReason(raw, str(raw.get("stop_reason")))
        case "usage_statistics":
            counts = (raw.get(name) or 0 for name in ("prompt_tokens", "completion_tokens", "step_count"))
            return UsageStatistics(raw, *counts)
        case _:
            return UnknownEvent(raw)


def flat(content: Any) -> str:
    """Returns a content as text: the texts among its parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _calls(raw: Json) -> list[Json]:
    calls: Any = raw.get("tool_calls") or raw.get("tool_call") or []
    return calls if isinstance(calls, list) else [calls]


def _call(raw: Json) -> Call:
    return Call(str(raw.get("tool_call_id") or ""), raw.get("name") or "", raw.get("arguments") or "")
