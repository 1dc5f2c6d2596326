"""A small streaming client: typed events that survive a lost connection. `loci chat` is written with it.

with Client("http://localhost:8283") as client:
    agent = client.get_agent("ada")
    for event in client.stream(agent["id"], "Hello"):
        if isinstance(event, AssistantMessage):
            print(event.text, end="")
"""

from cli.streaming.client import Client
from cli.streaming.errors import (
    AmbiguousName,
    ApiError,
    ConversationBusy,
    InvalidRequest,
    ModelFailed,
    NotFound,
    PendingApproval,
    RateLimited,
    StreamError,
    Unauthorized,
    Unreachable,
)
from cli.streaming.events import (
    AssistantMessage,
    AttemptAbandoned,
    Call,
    ErrorMessage,
    Event,
    Ping,
    ReasoningMessage,
    StopReason,
    ToolCallMessage,
    ToolReturnMessage,
    UnknownEvent,
    UsageStatistics,
)

__all__ = [
    "AmbiguousName",
    "ApiError",
    "AssistantMessage",
    "AttemptAbandoned",
    "Call",
    "Client",
    "ConversationBusy",
    "ErrorMessage",
    "Event",
    "InvalidRequest",
    "ModelFailed",
    "NotFound",
    "PendingApproval",
    "Ping",
    "RateLimited",
    "ReasoningMessage",
    "StopReason",
    "StreamError",
    "ToolCallMessage",
    "ToolReturnMessage",
    "Unauthorized",
    "UnknownEvent",
    "Unreachable",
    "UsageStatistics",
]
