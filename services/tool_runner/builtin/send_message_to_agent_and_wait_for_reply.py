"""`send_message_to_agent_and_wait_for_reply`: run by the agent service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

MESSAGE = {"type": "string", "description": "What you want to say. The other agent sees who says it."}
OTHER_AGENT = {"type": "string", "description": 'The id of the other agent: "agent-" and a UUID.'}

TOOL = BuiltinTool(
    name="send_message_to_agent_and_wait_for_reply",
    tool_type=ToolType.LETTA_MULTI_AGENT_CORE,
    description="""\
Say something to another agent and wait for its reply, which is what this returns.

The other agent may take its time. It cannot ask you anything before it has replied.""",
    properties={"message": MESSAGE, "other_agent_id": OTHER_AGENT},
    required=("message", "other_agent_id"),
)
