"""`finish_rethinking_memory`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="finish_rethinking_memory",
    tool_type=ToolType.LETTA_VOICE_SLEEPTIME_CORE,
    description="""\
Say that the memory about the user is up to date. Call it once, when nothing is left to add or correct.""",
    properties={},
    required=(),
)
