"""`memory_rethink`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="memory_rethink",
    tool_type=ToolType.LETTA_SLEEPTIME_CORE,
    description="""\
Write one of your memory blocks anew, from its first line to its last.

Use it to reorganise, condense or merge; for a single fact, edit that fact instead. Whatever your new text leaves out
is gone from the block, so carry over all that still holds.

Example:
    memory_rethink(label="human", new_memory="Name: Ada\\nWorks on: compilers\\nPrefers: short answers")""",
    properties={
        "label": {"type": "string", "description": "Label of the block to write anew."},
        "new_memory": {"type": "string", "description": "The whole new text of the block, without line numbers."},
    },
    required=("label", "new_memory"),
)
