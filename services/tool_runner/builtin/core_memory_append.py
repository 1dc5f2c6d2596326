"""`core_memory_append`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="core_memory_append",
    tool_type=ToolType.LETTA_MEMORY_CORE,
    description="""\
Add a line at the end of one of your memory blocks.""",
    properties={
        "label": {"type": "string", "description": 'Label of the block to edit, for example "human" or "persona".'},
        "content": {"type": "string", "description": "The text to add."},
    },
    required=("label", "content"),
)
