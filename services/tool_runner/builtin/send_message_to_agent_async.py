"""`send_message_to_agent_async`: run by the agent service."""

from services.tool_runner.builtin.send_message_to_agent_and_wait_for_reply import MESSAGE, OTHER_AGENT
from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="send_message_to_agent_async",
    tool_type=ToolType.LETTA_MULTI_AGENT_CORE,
    description="""\
Say something to another agent without waiting for what it makes of it.

If it has something to say to you, it sends you a message of its own.""",
    properties={"message": MESSAGE, "other_agent_id": OTHER_AGENT},
    required=("message", "other_agent_id"),
)
