"""memory_apply_patch on several blocks: headers say which block a part of the patch is about. Pure.

    *** Add Block: <label>       lines begun with "+" are its text
    *** Update Block: <label>    a unified diff follows; a line "*** Move to: <label>" before it renames the block
    *** Delete Block: <label>    detaches it from the agent; the block itself and its history stay

"*** Begin Patch" and "*** End Patch" may stand around it. The form is that of the reference API.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.memory.agents.model import AgentMemory
from services.memory.blocks.model import Block, BlockDraft, Operation, validate
from services.memory.core.editing import diffs, edits

# Possessive: of a line of blanks it is soon known that it names nothing.
_HEADER = re.compile(r"^\*\*\* (Add|Update|Delete) Block: *+(.*\S)\s*$")
_MOVE = re.compile(r"^\*\*\* Move to: *+(.*\S)\s*$")
_FRAME = re.compile(r"^\*\*\* (Begin|End) Patch\s*$")

Kind = Literal["Add", "Update", "Delete"]


@dataclass(slots=True)
class Part:
    """The part of a patch about one block. `lines` are those below the header."""

    kind: Kind
    label: str
    move_to: str | None = None
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Plan:
    """The new state of blocks that are there, by id; blocks to create; blocks to detach; what the model is told.

    operation: what history says of those that are edited.
    """

    edited: dict[UUID, Block] = field(default_factory=dict)
    created: list[BlockDraft] = field(default_factory=list)
    detached: list[UUID] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    operation: Operation = Operation.PATCH

    @property
    def changed_block_ids(self) -> tuple[UUID, ...]:
        """Returns the ids of the blocks that the agent has after it."""
        created = (draft.id for draft in self.created if draft.id is not None)
        return (*(block_id for block_id in self.edited if block_id not in self.detached), *created)


def parts(patch: str) -> list[Part]:
    """Returns the parts of a patch on several blocks; none if it has no headers. Raises Refused."""
    result: list[Part] = []
    lines = storable(patch).split("\n")
    if not any(_HEADER.match(line) for line in lines):
        return result
    for line in lines:
        if header := _HEADER.match(line):
            kind: Kind = header[1]  # type: ignore[assignment] # the expression allows these three
            result.append(Part(kind, header[2]))
        elif _FRAME.match(line):
            continue
        elif result:
            _add(result[-1], line)
        elif line.strip():
            raise _refusal(f"the line {line[:80]!r} stands before the first header")
    return result


def _add(part: Part, line: str) -> None:
    if not line.startswith("*** "):
        part.lines.append(line)
    elif part.kind == "Update" and part.move_to is None and (move := _MOVE.match(line)):
        part.move_to = move[1]
    else:
        raise _refusal(f"the header {line[:80]!r} has no meaning there")


def plan(parts: Sequence[Part], memory: AgentMemory, mint: Callable[[], UUID]) -> Plan:
    """Returns what the parts, one after the other, do to an agent's blocks: all of them or none. Raises Refused."""
    result = Plan()
    present = {block.label: block for block in memory.blocks}
    for part in parts:
        if part.kind == "Add":
            _create(result, present, part, mint())
            continue
        if part.label not in present:
            raise edits.unknown_label(part.label, present)
        block = present.pop(part.label)
        if part.kind == "Delete" or part.move_to is not None:
            refuse_unowned(block, memory)
        if part.kind == "Delete":
            result.detached.append(block.id)
            result.messages.append(f'The memory block "{block.label}" was removed from your memory.')
        else:
            after = _update(result, block, part)
            _check_free(after.label, present, result)
            present[after.label] = result.edited[after.id] = after
    return result


def _create(plan: Plan, present: dict[str, Block], part: Part, block_id: UUID) -> None:
    _check_free(part.label, present, plan)
    lines = part.lines[:]
    while lines and not lines[-1]:
        lines.pop()
    if wrong := [line for line in lines if not line.startswith("+")]:
        raise _refusal(f'every line of an added block begins with "+"; this one does not: {wrong[0][:80]!r}')
    value = "\n".join(line[1:] for line in lines)
    edits.refuse_line_numbers("patch", value)
    draft = validate(BlockDraft(id=block_id, label=part.label, value=value))
    plan.created.append(draft)
    plan.messages.append(f'The memory block "{draft.label}" was created ({len(value)} of {draft.limit} characters).')


def _update(plan: Plan, block: Block, part: Part) -> Block:
    """Returns the block with the part's diff and label."""
    if any(line.strip() for line in part.lines):
        block, edit = edits.apply_edit(block, partial(diffs.patch, diff="\n".join(part.lines)))
        plan.messages.append(edits.report(block, edit))
    elif part.move_to is None:
        raise _refusal(f'the part about the block "{block.label}" changes nothing')
    if part.move_to is not None:
        plan.messages.append(f'The memory block "{block.label}" is now labelled "{part.move_to}".')
        block = validate(replace(block, label=part.move_to))
    return block


def refuse_read_only(block: Block) -> None:
    """Raises Refused."""
    if block.read_only:
        raise _refusal(f'the memory block "{block.label}" is read-only; tools cannot change it')


def refuse_unowned(block: Block, memory: AgentMemory) -> None:
    """Raises Refused where an agent may not rename or detach a block."""
    refuse_read_only(block)
    if block.id in memory.isolated_block_ids:
        raise _refusal(
            f'the memory block "{block.label}" belongs to this conversation alone and keeps its label while that lasts'
        )


def _check_free(label: str, present: dict[str, Block], plan: Plan) -> None:
    if label in present or any(draft.label == label for draft in plan.created):
        raise _refusal(f'there is another memory block "{label}"')


def _refusal(why: str) -> Refused:
    return Refused("TOOL_REFUSED", f"Nothing was changed: {why}.")
