"""Edits that a tool made to the `agent_state` it was given."""

from typing import Any, cast

from services.agent.calls.block_edits import apply_edits
from services.agent.core.messages import Call, Return
from services.agent.core.ports import CallSite, Memory, ToolResult
from services.common.errors import Unavailable

CALL = Call(key="run/0/0", id="c", name="tidy", arguments="{}")


class _Memory:
    """Takes edits, but for those of one block."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def apply(self, call: Call, site: CallSite) -> Return:
        self.keys.append(call.key)
        if "lost" in call.arguments:
            raise Unavailable("memory is away")
        return Return(call.id, call.name, "The block was changed.")


async def test_an_edit_that_fails_leaves_what_the_tool_returned_and_the_other_edits() -> None:
    memory = _Memory()
    executed = ToolResult(Return("c", "tidy", "7"), edits=(("lost", "x"), ("human", "y")))
    told = await apply_edits(executed, CALL, cast(CallSite, None), cast(Memory, memory))
    lines: Any = told.returned.text.split("\n")
    assert lines[0] == "7"
    assert "lost may not have been changed: memory is away" in lines[1]
    assert lines[2] == "The block was changed."
    assert memory.keys == ["run/0/0:0", "run/0/0:1"]
    assert not told.returned.is_error
