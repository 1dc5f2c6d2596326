"""Stored streams and notices, as Protocols over plain values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol
from uuid import UUID

from services.agent.core.stored_stream import Frame

# Told apart by their first letter. shown: a run has shown more; watched: somebody reads it elsewhere; cancelled: it is
# to stop; the id is the run's. queued: a run waits for whoever has room; the id is the organization's. pushed:
# something waits for a device, or it has connected anew; the id is the device's.
Notice = Literal["shown", "watched", "cancelled", "queued", "pushed"]


@dataclass(frozen=True, slots=True)
class Flush:
    """Frames of one run that are stored as one row. `run_hour`: the full hour (UTC) in which the run was accepted."""

    organization_id: UUID
    run_hour: datetime
    run_id: UUID
    frames: Sequence[Frame]


@dataclass(frozen=True, slots=True)
class RunPlace:
    """The place of a run's frames. `known_from`: a reader that is past a position can forget all before this one."""

    run_hour: datetime
    background: bool
    known_from: int


@dataclass(frozen=True, slots=True)
class StreamSnapshot:
    """A run at one moment: the number of its facts, whether it has ended, and its frames after a position."""

    facts: int
    ended: bool
    frames: Sequence[Frame]


class FrameStore(Protocol):
    """Rows of frames, in partitions by hour."""

    async def append(self, flushes: Sequence[Flush]) -> None:
        """Stores rows; one that was stored before may come again with more. Their hours must have partitions."""
        ...

    async def place(self, organization_id: UUID, run_id: UUID, after: int) -> RunPlace:
        """Returns where to read. Raises NotFound (RUN_NOT_FOUND)."""
        ...

    async def look(
        self, organization_id: UUID, run_id: UUID, run_hour: datetime, position: int, after: int
    ) -> StreamSnapshot:
        """Returns the frames after `position` that can still tell a reader something who has seen up to `after`: those
        up to there, and those after the last fact. Raises NotFound (RUN_NOT_FOUND).
        """
        ...

    async def add_hours(self, hours: Sequence[datetime]) -> None:
        """Makes the partitions of these hours where they are missing."""
        ...

    async def drop_hours(self, before: datetime) -> int:
        """Drops the partitions of hours that end at or before this moment; how many."""
        ...


class BackgroundRuns(Protocol):
    """Finds background runs."""

    async def view(self, organization_id: UUID, run_id: UUID) -> str:
        """Returns how whoever began a run shows its stream; empty where nothing is said."""
        ...

    async def by_key(self, organization_id: UUID, key: str) -> UUID | None:
        """Returns the one whose request had a key."""
        ...

    async def active(self, organization_id: UUID, conversation_id: UUID) -> UUID | None:
        """Returns the one that is under way in a conversation, or the next."""
        ...


class Notifier(Protocol):
    """Tells the other replicas, soon and without a promise: everyone looks for himself once a second."""

    # Called with what the others tell.
    on_notice: Callable[[Notice, UUID], None]

    def tell(self, notice: Notice, subject_id: UUID) -> None:
        """Tells them."""
        ...
