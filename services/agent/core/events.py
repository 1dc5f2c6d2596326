"""The events that readers of a run see, in the order of `sequence`. Pure.

`sequence` is (fence - 1) * 1,000,000 + n: it rises strictly, across owners too, and is never used twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never
from uuid import UUID

from services.agent.core.facts import (
    Compacted,
    ContextOverflowed,
    Fact,
    Failure,
    MemberSpoke,
    ModelFailed,
    ModelReplied,
    Reminded,
    RunEnded,
    RunStatus,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from services.agent.core.messages import Message, Part, pieces
from services.agent.core.window.compaction import Trigger

SEQUENCES_PER_OWNER = 1_000_000


@dataclass(frozen=True, slots=True)
class Delta:
    """A part of a piece that may yet come to nothing."""

    sequence: int
    message_id: UUID
    step_id: UUID
    otid: str
    part: Part
    # Who says it, where that is not the run's own agent.
    name: str | None = None
    sender_id: str | None = None


@dataclass(frozen=True, slots=True)
class MessagePiece:
    """A piece of a message that is now durable."""

    sequence: int
    message: Message
    otid: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The deltas of a message are void; of the whole step when `message_id` is None."""

    sequence: int
    step_id: UUID
    message_id: UUID | None
    attempt: int


@dataclass(frozen=True, slots=True)
class Compacting:
    """The window is being compacted; `context_tokens` is None where nobody has counted. Never stored."""

    sequence: int
    run_id: UUID
    step_id: UUID
    trigger: Trigger
    context_tokens: int | None
    window: int
    # In the window, the system message included.
    messages: int = 0


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as its readers see it."""

    id: UUID
    agent_id: UUID
    conversation_id: UUID
    status: RunStatus
    fence: int
    created_at: datetime
    stop_reason: StopReason | None = None
    background: bool = False
    started_at: datetime | None = None
    first_token_at: datetime | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """Drops what was asked for: the run is over."""

    sequence: int
    run: RunView
    failure: Failure | None
    usage: Usage
    steps: int
    context_tokens: int | None
    # Log probabilities and token ids of each reply, where they were asked for: {"message_id", "outputs"}.
    outputs: tuple[Mapping[str, Any], ...] = ()
    # The run of the same conversation whose turn it now is, with the replica that shall drive it.
    successor: tuple[UUID, UUID | None] | None = None
    # Runs that it began in the background, and those of them whose turn it is, as `successor`.
    run_ids: tuple[UUID, ...] = ()
    begun: tuple[tuple[UUID, UUID | None], ...] = ()


# Events that are never stored.
Transient = Delta | Abandoned | Compacting
Event = Transient | MessagePiece | Ended


def first_sequence(fence: int) -> int:
    """Returns the first position of a run's owner."""
    return (fence - 1) * SEQUENCES_PER_OWNER + 1


def frames(fact: Fact) -> int:
    """Returns how many events a fact is shown as; the input is not shown."""
    match fact:
        case (
            ModelReplied(message=message)
            | ToolsReturned(message=message)
            | MemberSpoke(message=message)
            | Compacted(summary=Message() as message)
        ):
            return len(pieces(message))
        case RunEnded():
            return 1
        case UserSpoke() | ModelFailed() | ContextOverflowed() | Compacted() | Reminded():
            return 0
    assert_never(fact)


def show(message: Message, sequence: int) -> list[MessagePiece]:
    """Returns the events of a durable message, the first of them at `sequence`."""
    return [
        MessagePiece(sequence + number, message, otid, parts) for number, (otid, parts) in enumerate(pieces(message))
    ]
