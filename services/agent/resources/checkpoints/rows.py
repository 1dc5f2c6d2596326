"""Rows of checkpoints, rewinds and segments <-> values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.agent.core.messages import Text, parts_from_json
from services.agent.core.page_tokens import Place
from services.agent.core.turn import step_id
from services.agent.postgres.rows import message_from_row
from services.agent.resources.checkpoints.model import Checkpoint, CheckpointKind, CheckpointRef, Segment, label_of
from services.agent.resources.checkpoints.ports import Rewind, RewoundBlock

_SUBJECTS = {CheckpointKind.INPUT: "id", CheckpointKind.STEP: "step_id", CheckpointKind.RUN: "run_id"}


def checkpoint_from_row(row: Mapping[str, Any]) -> Checkpoint:
    """Returns a row of LIST or DETAILS (sql.py); its place is in the segment that the row names."""
    kind, message = CheckpointKind(row["kind"]), message_from_row(row)
    run_id, seen_run = row["run_id"], row["seen_run_id"]
    parts = parts_from_json(row["said"] or ())
    checkpoint = Checkpoint(
        ref=CheckpointRef(kind, _subject(kind, row)),
        run_id=run_id,
        message=message,
        place=Place(row["ordinal"], row["seq"]),
        label=label_of(kind, message, " ".join(part.text for part in parts if isinstance(part, Text))),
        seen={UUID(block_id): version for block_id, version in (row["seen"] or {}).items()},
        agent_id=row["agent_id"],
        conversation_id=row["conversation_id"],
    )
    if kind is CheckpointKind.INPUT:
        return checkpoint
    if kind is CheckpointKind.RUN or seen_run is None:
        return replace(checkpoint, run_ids=(run_id,))
    # Calls of an earlier run are answered in this one, before its own steps.
    steps = {step_id(seen_run, number) for number in range(row["seen_number"] + 1)}
    return replace(checkpoint, run_ids=(run_id, seen_run), until=frozenset(steps | {step_id(run_id, 0)}))


def _subject(kind: CheckpointKind, row: Mapping[str, Any]) -> UUID:
    subject: UUID = row[_SUBJECTS[kind]]
    return subject


def rewind_from_row(conversation_id: UUID, row: Mapping[str, Any]) -> Rewind:
    """Returns a row of `conversation_rewinds`."""
    to = CheckpointRef(CheckpointKind(row["to_kind"]), row["to_id"])
    left = CheckpointRef(CheckpointKind(row["left_kind"]), row["left_id"]) if row["left_id"] else None
    blocks = (RewoundBlock(**(block | {"block_id": UUID(block["block_id"])})) for block in row["blocks"])
    return Rewind(row["id"], conversation_id, to, left, tuple(blocks), row["created_at"], row["created_by_id"])


def columns(ref: CheckpointRef | None) -> tuple[str | None, UUID | None]:
    """Returns parameters of a checkpoint; nulls for none."""
    return (None, None) if ref is None else (ref.kind.value, ref.id)


def segments_from_rows(rows: Sequence[Mapping[str, Any]]) -> tuple[Segment, ...]:
    """Returns rows of segments, in their order."""
    return tuple(Segment(row["log_id"], row["from_seq"], row["to_seq"]) for row in rows)


def arrays(segments: Sequence[Segment]) -> tuple[list[UUID], list[int], list[int | None]]:
    """Returns parameters of segments: logs, first and last places."""
    return [each.log_id for each in segments], [each.from_seq for each in segments], [each.to_seq for each in segments]
