"""Blocks that a tool changed in the `agent_state` it was given: written to memory as the agent's own edits."""

import json
from dataclasses import replace

from services.agent.core.messages import Call
from services.agent.core.ports import CallSite, Memory, ToolResult
from services.common.errors import LociError

_TOOL = "memory_rethink"


async def apply_edits(executed: ToolResult, call: Call, site: CallSite, memory: Memory) -> ToolResult:
    """Returns the call with its edits applied, each exactly once under a key of its own; the return says what came of
    them.

    The model sees it in the same turn, the next one has it in its prompt. The tool has acted, whatever becomes of them.
    """
    results = []
    for index, (label, value) in enumerate(executed.edits):
        arguments = json.dumps({"label": label, "new_memory": value})
        edit = Call(f"{call.key}:{index}", call.id, _TOOL, arguments)
        try:
            results.append((await memory.apply(edit, site)).text)
        except LociError as error:
            results.append(f"The memory block {label[:80]} may not have been changed: {error.message}")
    if not results:
        return executed
    text = "\n".join([executed.returned.text, *results])
    return replace(executed, returned=replace(executed.returned, text=text))
