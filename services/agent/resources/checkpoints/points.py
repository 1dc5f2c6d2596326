"""Where a checkpoint is: found in the segments of its conversation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.agent.core.page_tokens import Place
from services.agent.resources.checkpoints import sql
from services.agent.resources.checkpoints.model import CheckpointKind, CheckpointRef, Segment, View, cut_at
from services.agent.resources.checkpoints.ports import Point
from services.agent.resources.checkpoints.rows import arrays, checkpoint_from_row, segments_from_rows
from services.common.errors import NotFound
from services.common.ids import to_public

_PREFIXES = {CheckpointKind.INPUT: "message", CheckpointKind.STEP: "step", CheckpointKind.RUN: "run"}
END_OF_ALL = Place(2**31 - 1, 0)
# What a conversation does not show any more is before all that it shows.
_BEHIND = -1


def end_of(point: Point) -> Place:
    """Returns the last message's place among the point's own segments."""
    return Place(len(point.segments) - 1, point.segments[-1].to_seq or 0)


async def find_point(connection: Any, organization_id: UUID, conversation_id: UUID, ref: CheckpointRef) -> Point:
    """Returns a checkpoint that the conversation shows, or showed before a rewind.

    Raises NotFound (CHECKPOINT_NOT_FOUND).
    """
    ends = [(row["log_id"], row["seq"]) for row in await connection.fetch(sql.FIND[ref.kind], organization_id, ref.id)]
    rows = await connection.fetch(sql.SEGMENTS, organization_id, conversation_id)
    segments, ordinal = _longest(segments_from_rows(rows), ends), _BEHIND
    if segments:
        ordinal = rows[len(segments) - 1]["ordinal"]
    for end in ends if not segments else ():
        left = await connection.fetch(sql.LEFT_BEHIND, organization_id, conversation_id, *end)
        segments = segments or _longest(segments_from_rows(left), [end])
    if not segments:
        public = to_public(_PREFIXES[ref.kind], ref.id)
        raise NotFound(f"This conversation has no checkpoint {public}", reason="CHECKPOINT_NOT_FOUND")
    last = segments[-1]
    row = await connection.fetchrow(sql.DETAILS, organization_id, last.log_id, last.to_seq, ref.kind)
    view = await connection.fetchrow(sql.VIEW, organization_id, *arrays(segments))
    checkpoint = checkpoint_from_row(row)
    checkpoint = replace(checkpoint, place=Place(ordinal, segments[-1].to_seq or 0))
    return Point(checkpoint, segments, View() if view is None else View(*view))


def _longest(segments: Sequence[Segment], ends: Sequence[tuple[UUID, int]]) -> tuple[Segment, ...]:
    """Returns the ranges of logs up to the last of these places; none where none is shown."""
    ranges = [before for end in ends if (before := cut_at(segments, *end)) is not None]
    return max(ranges, key=len, default=())
