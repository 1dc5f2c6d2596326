"""`memory_replace`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="memory_replace",
    tool_type=ToolType.LETTA_SLEEPTIME_CORE,
    description="""\
Replace a piece of text in one of your memory blocks.

The old text must occur exactly once in the block, written exactly as it stands there, without the line numbers
that are shown beside it. Keep it short: enough to be unique. An empty new text deletes the old one.

Examples:
    Correct a fact:
        memory_replace(label="human", old_string="Lives in Rome", new_string="Lives in Oslo")
    Forget a fact:
        memory_replace(label="human", old_string="Has a cat.", new_string="")""",
    properties={
        "label": {"type": "string", "description": "Label of the block to edit."},
        "old_string": {"type": "string", "description": "The text to replace; must occur exactly once."},
        "new_string": {"type": "string", "description": "The text to put in its place."},
    },
    required=("label", "old_string", "new_string"),
)
