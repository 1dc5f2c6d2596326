"""Checkpoints: places in a conversation where what was said is whole, and the memory of then. Pure.

A step names the versions of the blocks that it saw. What holds after it is that, and the newer versions that its own
run has made up to there: what others changed meanwhile the conversation did not know.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from services.agent.core.messages import Message, Return, text_of

LABEL_CHARACTERS = 80


class CheckpointKind(StrEnum):
    """The part of a run that is complete at a checkpoint."""

    INPUT = "input"
    STEP = "step"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """A checkpoint by its kind and the id of its message, step or run."""

    kind: CheckpointKind
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """See loci.agent.v1.Checkpoint. `place`: its last message's segment and place there; see lists.Place.

    `seen`: the versions that its step saw; of a run its last step, of an input its first. `run_ids`: the runs whose
    edits may count, its own first; `until`: the steps whose edits do, None: all. The agent and the conversation are
    those in which its last message was said.
    """

    ref: CheckpointRef
    run_id: UUID
    message: Message
    place: tuple[int, int]
    label: str
    seen: Mapping[UUID, int]
    run_ids: tuple[UUID, ...] = ()
    until: frozenset[UUID] | None = None
    agent_id: UUID
    conversation_id: UUID
    versions: Mapping[UUID, int] = field(default_factory=dict)

    @property
    def created_at(self) -> datetime:
        """When its last message was stored."""
        return self.message.created_at


@dataclass(frozen=True, slots=True)
class Edit:
    """A version of a block that a run made; `step_id` None: in no step."""

    block_id: UUID
    version: int
    run_id: UUID
    step_id: UUID | None


def with_edits(checkpoint: Checkpoint, edits: Iterable[Edit]) -> Checkpoint:
    """Returns the checkpoint with the versions of the blocks that hold after it."""
    versions = dict(checkpoint.seen)
    for edit in edits:
        if edit.run_id not in checkpoint.run_ids:
            continue
        if checkpoint.until is None or edit.step_id in checkpoint.until:
            versions[edit.block_id] = max(edit.version, versions.get(edit.block_id, 0))
    return replace(checkpoint, versions=versions)


def label_of(kind: CheckpointKind, message: Message, text: str) -> str:
    """Returns the message that ends at a checkpoint; `said`: the user's message to its run."""
    if kind is CheckpointKind.STEP:
        names = [part.name for part in message.parts if isinstance(part, Return)]
        return _shortened(", ".join(dict.fromkeys(names)))
    return _shortened(text or text_of(message))


def _shortened(text: str) -> str:
    line = " ".join(text[: 8 * LABEL_CHARACTERS].split())
    return line if len(line) <= LABEL_CHARACTERS else f"{line[: LABEL_CHARACTERS - 1]}…"


# Segments ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    """A range of a log that a conversation shows, both ends included; `to_seq` None: it is still written."""

    log_id: UUID
    from_seq: int
    to_seq: int | None = None


def cut_at(segments: Sequence[Segment], log_id: UUID, seq: int) -> tuple[Segment, ...] | None:
    """Returns the ranges of logs that a conversation shows up to a message; None where it does not show it."""
    for number, segment in enumerate(segments):
        inside = segment.from_seq <= seq and (segment.to_seq is None or seq <= segment.to_seq)
        if segment.log_id == log_id and inside:
            return (*segments[:number], replace(segment, to_seq=seq))
    return None


def closed(segments: Sequence[Segment], next_seq: int) -> tuple[Segment, ...]:
    """Returns the segments with the open one ended before `next_seq`, and without those that are empty."""
    ended = (each if each.to_seq is not None else replace(each, to_seq=next_seq - 1) for each in segments)
    return tuple(each for each in ended if each.to_seq is not None and each.from_seq <= each.to_seq)


@dataclass(frozen=True, slots=True)
class View:
    """The window that a conversation had: from which segment, by number, and which message in its log, and the summary
    of what was before.
    """

    segment: int = 0
    seq: int = 1
    summary_id: UUID | None = None
