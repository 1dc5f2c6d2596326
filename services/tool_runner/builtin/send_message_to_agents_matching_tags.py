"""`send_message_to_agents_matching_tags`: run by the agent service."""

from services.tool_runner.builtin.send_message_to_agent_and_wait_for_reply import MESSAGE
from services.tool_runner.builtin.tool import BuiltinTool, texts
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="send_message_to_agents_matching_tags",
    tool_type=ToolType.LETTA_MULTI_AGENT_CORE,
    description="""\
Say something to all agents with certain tags, at most 100, and wait for their replies.

It returns a list with the id, the name and the reply of each of them, or why there is none.""",
    properties={
        "message": MESSAGE,
        "match_all": texts("Tags that an agent must have, all of them. May be empty if match_some is not."),
        "match_some": texts("Tags of which an agent must have at least one. May be empty if match_all is not."),
    },
    required=("message", "match_all", "match_some"),
)
