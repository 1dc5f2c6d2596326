"""The ports of the journal and of the leases: runs, their facts and the replicas that own them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import UUID

from services.agent.core.approvals import answers_of
from services.agent.core.events import Event
from services.agent.core.facts import (
    Fact,
    Failure,
    Options,
    is_silent,
)
from services.agent.core.messages import Message
from services.agent.core.turn import Turn
from services.common.core.ceiling import Ceiling

# A run and the replica that shall drive it; None: whoever takes it from the queue.
Successor = tuple[UUID, UUID | None]


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one model call: as we estimate them, and as its provider counts. 0: not known."""

    estimated: int = 0
    reported: int = 0


@dataclass(frozen=True, slots=True)
class OwnedRun:
    """A run that this replica drives under `fence`, with what is known of it and of its conversation."""

    organization_id: UUID
    user_id: UUID
    run_id: UUID
    agent_id: UUID
    conversation_id: UUID
    fence: int
    turn: Turn
    # Until its deadline.
    seconds_left: float
    created_at: datetime
    ancestors: tuple[UUID, ...] = ()
    ceiling: Ceiling | None = None
    cancel_requested: bool = False
    background: bool = False
    # Of the prompt compiled last, to see whether it still holds.
    prompt_versions: dict[str, Any] | None = None
    # The prompt that this run began with, when an owner before had compiled it.
    prompt: "Prompt | None" = None
    recalled: int = 0
    # How many of its facts are stored.
    facts: int = 1
    # Of the conversation's newest model call, to tell how far our estimates are off.
    counted: TokenCounts = field(default_factory=TokenCounts)
    # The turn before this one ended after the request had come, or may have: memory may be another since.
    came_late: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """A compiled system prompt: SHA-256 of the text, and the versions it was made from."""

    hash: bytes
    text: str
    versions: dict[str, Any]
    block_versions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Commit:
    """Facts to store in one transaction. `sequences` holds the first frame's position for each fact.

    `metrics`: nanoseconds of the step that the facts touch, by name, and its `tool_problems`. `cut_short`: the step
    whose model call or tools an interruption stopped, 0 for none. `provider_trace`: what was sent to the provider and
    what it answered, where the request asked for it.
    """

    facts: tuple[Fact, ...]
    sequences: tuple[int, ...]
    turn: Turn
    prompt: Prompt | None
    first_token_at: datetime | None = None
    trace_id: str = ""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    provider_trace: str | None = None
    counted: TokenCounts = field(default_factory=TokenCounts)
    cut_short: int = 0
    # How many facts the run has before these: so that a commit whose answer was lost can be made again.
    before: int = 1


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The result of a commit. `successor` is the run whose turn it now is, and the replica to drive it.

    `declined`: the run ended because its calls wait, just when it was cancelled; it counts as cancelled.
    """

    cancel_requested: bool
    started_at: datetime | None = None
    completed_at: datetime | None = None
    successor: tuple[UUID, UUID | None] | None = None
    declined: bool = False
    # Runs that tend the agent's memory, and those of them whose turn it is.
    run_ids: tuple[UUID, ...] = ()
    begun: tuple[Successor, ...] = ()


class Fenced(Exception):
    """Another owner has the run: drop everything, say nothing."""


# What becomes of a request for a busy conversation: it waits in line, is refused, or cancels the running one and is
# next.
OnBusy = Literal["wait", "reject", "interrupt"]


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A request for a turn. `keys`: equal ones are one request. `labels`: the newest run with one is found by it."""

    organization_id: UUID
    user_id: UUID
    agent_id: UUID
    conversation_id: UUID
    run_id: UUID
    messages: tuple[Message, ...]
    seconds: float
    options: Options = field(default_factory=Options)
    keys: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    request_hash: bytes | None = None
    is_retry: bool = False
    ancestors: tuple[UUID, ...] = ()
    # The most that the run and all that it begins may do; None: all of the tenant.
    ceiling: Ceiling | None = None
    # What to do when the conversation is busy; None: the server's setting.
    on_busy: OnBusy | None = None
    background: bool = False

    @property
    def answers(self) -> bool:
        """Returns whether it holds answers to calls that wait for the client."""
        return bool(answers_of(self.messages))

    @property
    def is_silent(self) -> bool:
        """Returns whether it says nothing; see facts.is_silent."""
        return is_silent(self.options, self.messages)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The outcome of a request. `owned` is set when its turn came at once; `started` is False for a retry.

    `successor` is a run of the conversation whose turn it turned out to be. `interrupts`: a run to cancel first.
    """

    run_id: UUID
    started: bool
    owned: OwnedRun | None = None
    successor: Successor | None = None
    interrupts: UUID | None = None


class OwnershipLost(Exception):
    """The run has another owner, or has ended; the transaction is rolled back."""


class RunCannotBegin(Exception):
    """The run cannot begin: its agent was deleted while it waited, or its input does not fit any more."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Journal(Protocol):
    """The log of runs: requests, facts under a fence, events for readers, cancels."""

    async def accept(self, request: TurnRequest) -> Acceptance:
        """Stores a request, or finds the run of the request it repeats.

        Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND), ResourceExhausted (CONVERSATION_LINE_FULL), Aborted
        (CONVERSATION_BUSY, APPROVAL_PENDING), InvalidArgument (NO_PENDING_APPROVAL, TOOL_CALL_IDS_INVALID),
        AlreadyExists (RUN_ID_TAKEN), FailedPrecondition (RUN_CHAIN_INVALID).
        """
        ...

    async def commit(self, owned: OwnedRun, commit: Commit) -> CommitResult:
        """Stores facts, their messages and steps in one transaction. Raises Fenced."""
        ...

    async def events(self, organization_id: UUID, run_id: UUID, after: int) -> list[Event]:
        """Returns the events of stored facts from a position on, and the end. Raises NotFound (RUN_NOT_FOUND)."""
        ...

    async def cancel(self, organization_id: UUID, runs: Sequence[tuple[UUID, UUID]]) -> list[UUID]:
        """Asks runs, given with their conversations, to stop. Returns the ids it reached.

        Those in line end at once. Where one has ended because its calls wait for the client, they wait no longer.
        """
        ...

    async def waiting_runs(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None
    ) -> list[tuple[UUID, UUID]]:
        """Returns the runs of an agent whose calls wait for the client, with their conversations.

        conversation_id: only those of this one.
        """
        ...

    async def withdraw(self, organization_id: UUID, conversation_id: UUID, run_id: UUID) -> None:
        """Takes a request out of its line whose client is gone, unless it has begun or its reader is elsewhere."""
        ...


class Leases(Protocol):
    """The lease of one replica, and the runs it takes. A claimed run is a row: id, organization_id, fence ..."""

    worker_id: UUID

    async def register(self) -> None:
        """Begins this replica's lease."""
        ...

    async def tick(self) -> Mapping[str, Any]:
        """Beats, and returns what the replica must notice: alive, cancelled, tenants, mine, lost, overdue, ready."""
        ...

    async def reap(self) -> int:
        """Queues the runs of replicas that stopped beating. Returns how many."""
        ...

    async def resign(self) -> None:
        """Ends the lease and hands over what still runs."""
        ...

    async def repair(self) -> None:
        """Queues runs whose owner is in no table, marks tenants ready that have queued runs, and moves lines on whose
        turn ended unnoticed."""
        ...

    async def answer_overdue(self) -> list[tuple[UUID, Successor]]:
        """Begins runs with the default answers to calls that waited too long; each with its organization."""
        ...

    async def claim(self, most: int, organization_id: UUID | None = None) -> list[Mapping[str, Any]] | None:
        """Takes queued runs of a tenant, else of the one that was served longest ago; None when no tenant is ready."""
        ...

    async def reclaim(self, organization_id: UUID, run_id: UUID) -> Mapping[str, Any] | None:
        """Takes a run of this replica that nobody drives."""
        ...

    async def adopt(self, organization_id: UUID, run_id: UUID, fence: int) -> Mapping[str, Any] | None:
        """Takes a run from the replica that has it under this fence."""
        ...

    async def load(self, run: Mapping[str, Any]) -> OwnedRun:
        """Returns a claimed run with its turn. Raises OwnershipLost, RunCannotBegin, NewerRelease."""
        ...

    async def hand_back(self, run: Mapping[str, Any]) -> None:
        """Gives a run that this replica cannot read to those that have not refused it yet."""
        ...

    async def wait_in_line(self, run: Mapping[str, Any]) -> Successor | None:
        """Puts a background run that finds calls waiting for the client back into its line. Returns who is next."""
        ...

    async def give_up(self, run: Mapping[str, Any], failure: Failure, *, keeps_input: bool = True) -> Successor | None:
        """Ends a claimed run that cannot be driven. Returns the next in line, if there is one.

        What it was to say is put into the log if it has not begun, unless its client is told and says it again.
        """
        ...
