"""The ports of checkpoints, and the values that they take."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from services.agent.resources.checkpoints.model import Checkpoint, CheckpointRef, Edit, Segment, View
from services.agent.resources.conversations.model import Conversation
from services.agent.resources.conversations.ports import NewConversation
from services.common.core.paging import PageOf


@dataclass(frozen=True, slots=True)
class Point:
    """A checkpoint found: the segments of its conversation up to it, and the window of then."""

    checkpoint: Checkpoint
    segments: tuple[Segment, ...]
    view: View


@dataclass(frozen=True, slots=True)
class Inheritance:
    """The parts that a fork has of its agent: the last message they share, its copies of blocks, the archives."""

    message_id: UUID
    block_ids: tuple[UUID, ...]
    archive_ids: tuple[UUID, ...]


# What was done to a block, and who sees it: the conversation alone, the agent's others, other agents; "" nobody.
Outcome = Literal["restored", "left", "missing"]
Scope = Literal["", "conversation", "agent", "agents"]


@dataclass(frozen=True, slots=True)
class RewoundBlock:
    """See loci.agent.v1.RewoundBlock."""

    block_id: UUID
    label: str
    version: int
    outcome: Outcome
    scope: Scope


@dataclass(frozen=True, slots=True)
class Rewind:
    """See loci.agent.v1.Rewind. `to` and `left`: checkpoints."""

    id: UUID
    conversation_id: UUID
    to: CheckpointRef
    left: CheckpointRef | None
    blocks: tuple[RewoundBlock, ...]
    created_at: datetime
    created_by_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRewind:
    """A rewind to make."""

    organization_id: UUID
    user_id: UUID
    conversation_id: UUID
    id: UUID
    to: CheckpointRef


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBlock:
    """A block and the version that it had. `label`: None where the conversation sees it no more; `own`: its copy;
    `wanted`: it is to be set back.
    """

    block_id: UUID
    label: str | None
    version: int
    own: bool
    wanted: bool


@dataclass(frozen=True, slots=True)
class BegunRewind:
    """A rewind that holds its conversation: what is left to do is in `plan`."""

    new: NewRewind
    agent_id: UUID
    plan: tuple[PlannedBlock, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFork:
    """An agent to make out of another. Its parts were made under a reservation, which must still be there."""

    organization_id: UUID
    user_id: UUID
    id: UUID
    # Of the source; None for the source's own name and " (fork)".
    conversation_id: UUID
    name: str | None
    inheritance: Inheritance


class CheckpointStore(Protocol):
    """Checkpoints of a tenant's conversations; default ones have the id of their agent.

    Checkpoints come as their steps saw the blocks, without the edits of their runs.
    """

    async def list(
        self,
        organization_id: UUID,
        conversation_id: UUID,
        *,
        size: int,
        token: str = "",
        after: Checkpoint | None = None,
    ) -> PageOf[Checkpoint]:
        """Returns one page of those that the conversation shows, newest first. Raises Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def find(self, organization_id: UUID, conversation_id: UUID, ref: CheckpointRef) -> Point:
        """One that the conversation shows, or showed before a rewind. Raises NotFound (CHECKPOINT_NOT_FOUND)."""
        ...

    async def rewinds(self, organization_id: UUID, conversation_id: UUID, *, size: int, token: str) -> PageOf[Rewind]:
        """Returns one page, newest first. Raises Refused (PAGE_TOKEN_INVALID)."""
        ...

    async def fork(
        self, new: NewConversation, source_id: UUID, point: Point, *, reserved: bool, hidden: bool
    ) -> Conversation | None:
        """Stores a conversation that begins with what is before the point; None when the id is taken, the reservation
        or the source gone.
        """
        ...

    async def fork_agent(self, fork: AgentFork, point: Point) -> bool:
        """Stores an agent with a default conversation that begins so; False as above."""
        ...

    async def inheritance(self, organization_id: UUID, agent_id: UUID) -> Inheritance | None:
        """Returns what a fork has of its agent; None for an agent that is no fork."""
        ...


class RewindStore(Protocol):
    """Rewinds: made ones, and those that hold their conversation. Every step is one transaction."""

    async def find(self, new: NewRewind) -> Rewind | BegunRewind | None:
        """Returns it if it was made or has begun. Raises AlreadyExists (REWIND_ID_TAKEN) for one to another place."""
        ...

    async def begun(self, organization_id: UUID, conversation_id: UUID, rewind_id: UUID) -> BegunRewind | None:
        """Returns one that has begun."""
        ...

    async def begin(self, rewind: BegunRewind) -> None:
        """Holds the conversation, and orders that the rewind be finished should it be left.

        Raises NotFound (CONVERSATION_NOT_FOUND, CHECKPOINT_NOT_FOUND), Aborted (CONVERSATION_BUSY).
        """
        ...

    async def finish(self, rewind: BegunRewind, blocks: Sequence[RewoundBlock]) -> Rewind:
        """Makes the conversation end there, and lets it go; one that was finished is returned again.

        Raises NotFound (CONVERSATION_NOT_FOUND), Aborted (CONVERSATION_BUSY) where a run has the turn all the same.
        """
        ...

    async def give_up(self, rewind: BegunRewind) -> None:
        """Lets the conversation go as it is."""
        ...


@dataclass(frozen=True, slots=True)
class BlockSeen:
    """A block as it is now. `own`: a conversation's copy."""

    id: UUID
    label: str
    own: bool = False


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The outcome of a restore: labels by id, those that other agents see as well, those that are gone."""

    labels: Mapping[UUID, str]
    shared: frozenset[UUID]
    missing: frozenset[UUID]


class VersionedMemories(Protocol):
    """Blocks and their versions, in the memory service. Every call may be repeated with the same `request_id`."""

    async def edits(self, run_ids: Sequence[UUID]) -> Sequence[Edit]:
        """Returns the versions of blocks that runs made; no call without runs."""
        ...

    async def blocks(self, agent_id: UUID, conversation_id: UUID) -> Sequence[BlockSeen]:
        """Returns those that a conversation sees now."""
        ...

    async def restore(
        self, agent_id: UUID, conversation_id: UUID, versions: Mapping[UUID, int], request_id: str
    ) -> RestoreResult:
        """Sets blocks back. Raises NotFound (BLOCK_VERSION_NOT_FOUND)."""
        ...

    async def isolate(
        self,
        agent_id: UUID,
        conversation_id: UUID,
        labels: Sequence[str],
        source_id: UUID,
        versions: Mapping[UUID, int],
    ) -> tuple[UUID, ...]:
        """Copies for a conversation the blocks that another sees, as they were."""
        ...

    async def copy(
        self, agent_id: UUID, conversation_id: UUID, target_id: UUID, versions: Mapping[UUID, int], request_id: str
    ) -> tuple[UUID, ...]:
        """Copies for an agent the blocks that a conversation of another sees, as they were."""
        ...

    async def share_archives(self, agent_id: UUID, target_id: UUID) -> tuple[UUID, ...]:
        """Attaches an agent's archives to another; which they are."""
        ...
