"""The tool `memory`: what its commands do to blocks, and what they refuse."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from services.common.core.refusals import Refused
from services.memory.agents.model import AgentMemory
from services.memory.blocks.model import Operation
from services.memory.core.editing.patches import Plan
from services.memory.core.tools import memory_tool
from services.memory.core.tools.arguments import Arguments
from tests.unit.memory.test_blocks import BLOCK

HUMAN = replace(BLOCK, id=UUID(int=1), label="human", value="one\ntwo", limit=100)
DEEP = replace(HUMAN, id=UUID(int=2), label="work/today")
FIXED = replace(HUMAN, id=UUID(int=3), label="fixed", read_only=True)
OWN = replace(HUMAN, id=UUID(int=4), label="own")
MEMORY = AgentMemory(agent_id=UUID(int=9), blocks=(HUMAN, DEEP, FIXED, OWN), isolated_block_ids=(OWN.id,))
NEW = UUID(int=100)


def expected(command: str, **arguments: Any) -> memory_tool.EditCommand | memory_tool.PlanCommand:
    return memory_tool.command(Arguments.parse(json.dumps({"command": command, **arguments})), lambda: NEW)


def plan_of(command: str, **arguments: Any) -> Plan:
    plan_of = expected(command, **arguments)
    assert isinstance(plan_of, memory_tool.PlanCommand)
    return plan_of.plan(MEMORY)


def edit_of(command: str, **arguments: Any) -> tuple[str, str, Operation]:
    change = expected(command, **arguments)
    assert isinstance(change, memory_tool.EditCommand)
    edit = change.operation(HUMAN.value)
    return change.label, edit.value, edit.operation


def test_values_change() -> None:
    values: Any = {"path": "/memories/human", "old_string": "two", "new_string": "2"}
    assert edit_of("str_replace", **values) == ("human", "one\n2", Operation.REPLACE)
    assert edit_of("str_replace", path="human", old_string="\ntwo") == ("human", "one", Operation.REPLACE)
    values = {"path": "memories/work/today", "insert_line": 1, "insert_text": "x"}
    assert edit_of("insert", **values) == ("work/today", "one\nx\ntwo", Operation.INSERT)
    assert edit_of("insert", path="/human", insert_text="x")[1] == "one\ntwo\nx"


def test_blocks_come_and_go() -> None:
    made = plan_of("create", path="/memories/a/b", file_text="text", description="what for")
    [draft] = made.created
    assert (draft.id, draft.label, draft.value, draft.description) == (NEW, "a/b", "text", "what for")
    assert "created (4 of 100000" in made.messages[0]
    assert plan_of("create", path="a").created[0].value == ""
    gone = plan_of("delete", path="/memories/human")
    assert (gone.detached, gone.changed_block_ids) == ([HUMAN.id], ())
    assert "detached" in gone.messages[0]


def test_blocks_are_renamed_and_described() -> None:
    moved = plan_of("rename", old_path="/memories/human", new_path="/memories/person")
    assert (moved.edited, moved.operation) == ({HUMAN.id: replace(HUMAN, label="person")}, Operation.SET)
    described = plan_of("rename", path="own", description="d\0")
    assert described.edited == {OWN.id: replace(OWN, description="d")}
    both = plan_of("rename", path="human", new_path="person", description="d")
    assert both.edited == {HUMAN.id: replace(HUMAN, label="person", description="d")}
    assert len(both.messages) == 2
    assert plan_of("rename", old_path="human", new_path="human").edited == {}


@pytest.mark.parametrize(
    ("command", "arguments", "complaint"),
    [
        ("view", {"path": "human"}, '"create" or "str_replace"'),
        ("create", {}, '"path" is missing'),
        ("create", {"path": "/memories/"}, "names no block"),
        ("create", {"path": "/memories/human"}, "already. Change it with str_replace or insert"),
        ("create", {"path": "a" * 101}, "1 to 100 characters"),
        ("create", {"path": "a", "file_text": "x" * 100_001}, "100001 characters long, its limit is 100000"),
        ("create", {"path": "a", "file_text": "Line 1: x"}, "file_text has a line number"),
        ("str_replace", {"path": "human", "old_string": "three"}, "does not occur"),
        ("str_replace", {"path": "human", "old_string": "o"}, "occurs 2 times"),
        ("create", {"path": "new", "description": "x" * 5_001}, "5001 characters long, and it may have at most 5000"),
        ("rename", {"path": "human", "description": "x" * 5_001}, "5001 characters long"),
        ("str_replace", {"path": "human"}, '"old_string" is missing'),
        ("insert", {"path": "human"}, '"insert_text" is missing'),
        ("insert", {"path": "human", "insert_text": "1→ x"}, "insert_text has a line number"),
        ("insert", {"path": "human", "insert_text": "x", "insert_line": 3}, "the block has 2 lines"),
        ("delete", {"path": "nobody"}, "The blocks are: human, work/today, fixed, own."),
        ("delete", {"path": "fixed"}, "read-only"),
        ("delete", {"path": "own"}, "belongs to this conversation"),
        ("rename", {"path": "human"}, "give new_path, description or both"),
        ("rename", {"old_path": "human", "new_path": "own"}, 'another memory block "own"'),
        ("rename", {"old_path": "own", "new_path": "mine"}, "belongs to this conversation"),
        ("rename", {"path": "fixed", "description": "d"}, "read-only"),
        ("rename", {"old_path": "human", "new_path": "l" * 101}, "1 to 100 characters"),
    ],
)
def test_what_is_refused(command: str, arguments: Any, complaint: str) -> None:
    act = edit_of if command in ("str_replace", "insert") else plan_of
    with pytest.raises(Refused, match=complaint):
        act(command, **arguments)
