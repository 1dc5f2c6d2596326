"""A small streaming client: typed events that survive a lost connection. `loci chat` is written with it.

with Client("http://localhost:8283") as client:
    agent = client.get_agent("ada")
    for event in client.stream(agent["id"], "Hello"):
        if isinstance(event, Said):
            print(event.text, end="")
"""

from cli.streaming.client import Client
from cli.streaming.errors import (
    AgentsOfOneName,
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
    AttemptAbandoned,
    Call,
    Called,
    Event,
    Failed,
    Other,
    Ping,
    Returned,
    Said,
    Stopped,
    Thought,
    Usage,
)

__all__ = [
    "AgentsOfOneName",
    "ApiError",
    "AttemptAbandoned",
    "Call",
    "Called",
    "Client",
    "ConversationBusy",
    "Event",
    "Failed",
    "InvalidRequest",
    "ModelFailed",
    "NotFound",
    "Other",
    "PendingApproval",
    "Ping",
    "RateLimited",
    "Returned",
    "Said",
    "Stopped",
    "StreamError",
    "Thought",
    "Unauthorized",
    "Unreachable",
    "Usage",
]
