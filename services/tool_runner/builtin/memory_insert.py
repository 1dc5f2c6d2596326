"""`memory_insert`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="memory_insert",
    tool_type=ToolType.LETTA_SLEEPTIME_CORE,
    description="""\
Insert text into one of your memory blocks at a chosen line.

Use it to add a fact without touching what is already there.

Examples:
    Add a line at the end of the block about the user:
        memory_insert(label="human", new_string="Prefers short answers.")
    Add a line at the top:
        memory_insert(label="human", new_string="Name: Ada", insert_line=0)""",
    properties={
        "label": {"type": "string", "description": "Label of the block to edit."},
        "new_string": {"type": "string", "description": "The text to insert, without line numbers."},
        "insert_line": {
            "type": "integer",
            "description": "Line after which the text goes: 0 for the top, -1 (the default) for the end.",
        },
    },
    required=("label", "new_string"),
)
