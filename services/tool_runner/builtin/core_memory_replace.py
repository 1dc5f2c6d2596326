"""`core_memory_replace`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="core_memory_replace",
    tool_type=ToolType.LETTA_MEMORY_CORE,
    description="""\
Replace text in one of your memory blocks.

The old text must stand in the block exactly as given. An empty new text deletes the old one.""",
    properties={
        "label": {"type": "string", "description": 'Label of the block to edit, for example "human" or "persona".'},
        "old_content": {"type": "string", "description": "The text to replace, exactly as it stands in the block."},
        "new_content": {"type": "string", "description": "The text to put in its place; empty to delete."},
    },
    required=("label", "old_content", "new_content"),
)
