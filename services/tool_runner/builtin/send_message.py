"""`send_message`: answered by the agent service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="send_message",
    tool_type=ToolType.LETTA_CORE,
    description="""\
Speak to the user. What you write here is all that the user sees of your work.""",
    properties={"message": {"type": "string", "description": "What to say, in full."}},
    required=("message",),
)
