"""`rethink_user_memory`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="rethink_user_memory",
    tool_type=ToolType.LETTA_VOICE_SLEEPTIME_CORE,
    description="""\
Write the memory block about the user (labelled "human") anew, with what the latest conversation adds or corrects.

Carry over all that still holds; what your new text leaves out is gone from the block.""",
    properties={
        "new_memory": {"type": "string", "description": "The whole new text of the block, without line numbers."},
    },
    required=("new_memory",),
)
