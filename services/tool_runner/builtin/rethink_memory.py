"""`rethink_memory`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="rethink_memory",
    tool_type=ToolType.LETTA_MEMORY_CORE,
    description="""\
Write one of your memory blocks anew: what you learned is merged into what still holds, and the rest is gone.""",
    properties={
        "new_memory": {"type": "string", "description": "The whole new text of the block, without line numbers."},
        "target_block_label": {"type": "string", "description": "Label of the block to write anew."},
    },
    required=("new_memory", "target_block_label"),
)
