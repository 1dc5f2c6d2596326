"""A change of an archive's embedding model: its states, what may follow what, and who answers meanwhile. Pure.

While it runs, searches use the model before, and passages get vectors of the model after beside those they have. When
hardly any lacks one, searches switch at once; the vectors before are kept until the change is finished or taken back.
Taking it back is the same move with the roles exchanged.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from services.memory.archives.model import EmbeddingModel
from services.memory.core.ranking.search import Part

# Of the passages of an archive; what the other side lacks is found by its words.
_NEARLY_ALL = 0.95


class ChangeError(Exception):
    """The state that the change is in forbids it. `message` says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ChangeRunning(ChangeError):
    """Another change runs."""


class ChangeFinished(ChangeError):
    """The vectors of the model before are gone."""


class ChangeState(IntEnum):
    """The state of a change; the numbers are those of EmbeddingChangeState in the proto, and stored."""

    RUNNING = 1
    COMPLETED = 2
    ROLLED_BACK = 3
    FINISHED = 4


class Position(NamedTuple):
    """A place in the order of the passages of an archive: by creation, oldest first."""

    created_at: datetime
    passage_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A handle, or None for no vectors; `model_id` is None until it is known how long its vectors are."""

    embedding: str | None
    model_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingChange:
    """A change as stored. `rolling_back`: it goes back, and `before` and `after` are exchanged meanwhile.

    reached: where to look for passages without a vector, None: from the start; it only saves time.
    """

    id: UUID
    archive_id: UUID
    before: Target
    after: Target
    state: ChangeState = ChangeState.RUNNING
    rolling_back: bool = False
    error: str = ""
    reached: Position | None = None

    @property
    def in_use(self) -> Target:
        """Returns what the archive uses."""
        return self.after if self.state in (ChangeState.COMPLETED, ChangeState.FINISHED) else self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveState:
    """The model that an archive uses now, and its newest change."""

    now: Target
    newest: EmbeddingChange | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A change and how far it is. `embedded` counts passages that the model after gives no vector, too."""

    change: EmbeddingChange
    embedded: int
    total: int
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class PassageCheck(NamedTuple):
    """A passage that was looked at; `lacks` a vector of the model after."""

    place: Position
    lacks: bool


@dataclass(frozen=True, slots=True)
class ModelCoverage:
    """The number of passages of an archive with a vector of a model that is not the one in use."""

    archive_id: UUID
    passages: int
    model: EmbeddingModel
    covered: int


def begin_change(standing: ArchiveState, draft: EmbeddingChange) -> EmbeddingChange:
    """Returns the change that answers a wish for `draft`: that, from the model in use, or the newest if it is the same.

    Wishing for the model in use gives up a rollback that waits. Raises ChangeRunning.
    """
    newest, embedding = standing.newest, draft.after.embedding
    new = replace(draft, before=standing.now)
    if newest is None:
        return new
    if newest.state is ChangeState.RUNNING:
        if newest.after.embedding == embedding:
            return newest
        if newest.rolling_back and embedding == standing.now.embedding:
            return _exchange(newest, ChangeState.COMPLETED, rolling_back=False)
        raise ChangeRunning(
            f"the archive is being changed to {_name_of(newest.after)}; wait for that, or roll it back first"
        )
    if newest.state is ChangeState.COMPLETED and newest.after.embedding == embedding:
        return newest
    return new


def roll_back_change(newest: EmbeddingChange) -> EmbeddingChange:
    """Returns the change once it is asked to go back. Raises ChangeFinished."""
    match newest.state:
        case ChangeState.RUNNING if not newest.rolling_back:
            return replace(newest, state=ChangeState.ROLLED_BACK, error="")
        case ChangeState.COMPLETED:
            return _exchange(newest, ChangeState.RUNNING, rolling_back=True)
        case ChangeState.FINISHED:
            raise ChangeFinished(
                f"the vectors of {_name_of(newest.before)} are erased; change to that model anew to go back to it"
            )
        case _:
            return newest


def finish_change(newest: EmbeddingChange) -> EmbeddingChange:
    """Returns the change once the vectors that are not used may go. Raises ChangeRunning."""
    if newest.state is ChangeState.RUNNING:
        raise ChangeRunning("the change still runs; wait until it is completed, or roll it back")
    return replace(newest, state=ChangeState.FINISHED) if newest.state is ChangeState.COMPLETED else newest


def switch_change(change: EmbeddingChange, now: Target) -> EmbeddingChange:
    """Returns the change once searches use the model after; `now` is what they used."""
    if change.rolling_back:
        return _exchange(change, ChangeState.ROLLED_BACK, rolling_back=False)
    return replace(change, state=ChangeState.COMPLETED, before=now, error="", reached=None)


def next_batch(walked: Sequence[PassageCheck], most: int) -> tuple[list[UUID], Position]:
    """Returns ids of the first passages that lack a vector, at most so many, and how far that is."""
    lacking = [one.place for one in walked if one.lacks][:most]
    return [place.passage_id for place in lacking], lacking[-1] if len(lacking) == most else walked[-1].place


def usable_alternatives(sides: Iterable[ModelCoverage]) -> dict[EmbeddingModel, Part]:
    """Returns the models that can stand in for those of archives: nearly all passages there have vectors of them."""
    best: dict[UUID, ModelCoverage] = {}
    for side in sides:
        if side.passages and side.covered >= _NEARLY_ALL * side.passages:
            rival = best.get(side.archive_id)
            best[side.archive_id] = side if rival is None or side.covered > rival.covered else rival
    by_model: dict[EmbeddingModel, list[ModelCoverage]] = {}
    for side in best.values():
        by_model.setdefault(side.model, []).append(side)
    return {
        model: Part(tuple(side.archive_id for side in members), sum(side.passages for side in members))
        for model, members in by_model.items()
    }


def _exchange(change: EmbeddingChange, state: ChangeState, *, rolling_back: bool) -> EmbeddingChange:
    return replace(
        change,
        before=change.after,
        after=change.before,
        state=state,
        rolling_back=rolling_back,
        error="",
        reached=None,
    )


def _name_of(target: Target) -> str:
    return target.embedding or "no embedding model"


# What an RPC makes of the state of an archive; it runs under its lock.
Decide = Callable[[ArchiveState], EmbeddingChange]


class TextToEmbed(NamedTuple):
    """A text, as long as can be embedded, and the hash of all of it."""

    passage_id: UUID
    text: str
    text_hash: str


class TextVector(NamedTuple):
    """A vector of length 1 for a text; None: the model has none for it."""

    passage_id: UUID
    text_hash: str
    vector: Sequence[float] | None
