"""memory_apply_patch on several blocks: what the parts of a patch do."""

from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from services.common.core.refusals import Refused
from services.memory.agents.model import AgentMemory
from services.memory.core.editing import patches
from services.memory.core.editing.patches import Part, Plan
from tests.unit.memory.test_blocks import BLOCK

HUMAN = replace(BLOCK, id=UUID(int=1), label="human", value="one\ntwo", limit=100)
NOTES = replace(HUMAN, id=UUID(int=2), label="notes", value="n")
FIXED = replace(HUMAN, id=UUID(int=3), label="fixed", read_only=True)
OWN = replace(HUMAN, id=UUID(int=4), label="own")
MEMORY = AgentMemory(agent_id=UUID(int=9), blocks=(HUMAN, NOTES, FIXED, OWN), isolated_block_ids=(OWN.id,))


def ids() -> Iterator[UUID]:
    return iter(UUID(int=number) for number in range(100, 200))


def plan_of(patch: str) -> Plan:
    return patches.plan(patches.parts(patch), MEMORY, ids().__next__)


def test_a_plain_diff_has_no_parts() -> None:
    assert patches.parts("@@\n-one\n+1\n+*** Add Block: x") == []


def test_parts_carry_their_lines() -> None:
    update = "*** Update Block: human\n*** Move to: person\n@@\n-one\n"
    assert patches.parts(f"*** Begin Patch\n{update}*** Add Block: a b \n+x\n*** End Patch\n") == [
        Part("Update", "human", "person", ["@@", "-one"]),
        Part("Add", "a b", None, ["+x", ""]),
    ]


def test_all_kinds_at_once() -> None:
    plan = plan_of(
        "*** Update Block: human\n*** Move to: person\n@@\n-one\n+1\n*** Delete Block: notes\n"
        "*** Add Block: notes\n+a\n+\n+b\n*** Update Block: person\n@@\n-two\n+2\n*** Update Block: own\n+x\n one"
    )
    assert [(block.id.int, block.label, block.value) for block in plan.edited.values()] == [
        (1, "person", "1\n2"),
        (4, "own", "x\none\ntwo"),
    ]
    assert [(draft.label, draft.value) for draft in plan.created] == [("notes", "a\n\nb")]
    assert plan.detached == [NOTES.id]
    assert plan.changed_block_ids == (HUMAN.id, OWN.id, UUID(int=100))
    answer = "\n".join(plan.messages)
    assert 'labelled "person"' in answer
    assert '"notes" was removed' in answer
    assert '"notes" was created (4 of 100000' in answer


def test_a_block_that_was_changed_and_removed_is_not_among_the_changed() -> None:
    plan = plan_of("*** Update Block: notes\n+m\n n\n*** Delete Block: notes")
    assert (plan.detached, plan.changed_block_ids) == ([NOTES.id], ())
    assert plan.edited[NOTES.id].value == "m\nn"


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [
        ("x\n*** Add Block: a", "stands before the first header"),
        ("*** Add Block: human\n+x", 'another memory block "human"'),
        ("*** Add Block: a\n+x\n*** Add Block: a\n+y", 'another memory block "a"'),
        ("*** Add Block: a\nx", 'begins with "\\+"'),
        ("*** Add Block: " + "a" * 101, "1 to 100 characters"),
        ("*** Add Block: a\n*** Move to: b", "has no meaning there"),
        ("*** Update Block: human\n*** Move to: b\n*** Move to: c", "has no meaning there"),
        ("*** Update Block: human\n*** Rename: b", "has no meaning there"),
        ("*** Update Block: human\n", "changes nothing"),
        ("*** Update Block: nobody\n-a", "The blocks are: human, notes, fixed, own."),
        ("*** Update Block: human\n*** Move to: notes", 'another memory block "notes"'),
        ("*** Update Block: human\n-zero", "do not stand in the block"),
        ("*** Update Block: fixed\n-one", "read-only"),
        ("*** Update Block: fixed\n*** Move to: free", "read-only"),
        ("*** Delete Block: fixed", "read-only"),
        ("*** Delete Block: own", "belongs to this conversation"),
        ("*** Update Block: own\n*** Move to: mine", "belongs to this conversation"),
        ("*** Delete Block: human\n*** Update Block: human\n-one", "The blocks are: notes, fixed, own."),
        ("*** Update Block: notes\n+" + "x" * 100 + "\n n", "its limit is 100"),
    ],
)
def test_what_is_refused(patch: str, complaint: str) -> None:
    with pytest.raises(Refused, match=complaint):
        plan_of(patch)
