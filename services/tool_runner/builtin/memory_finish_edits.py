"""`memory_finish_edits`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="memory_finish_edits",
    tool_type=ToolType.LETTA_SLEEPTIME_CORE,
    description="""\
Say that you are done with editing your memory. Call it once, after your last edit.""",
    properties={},
    required=(),
)
