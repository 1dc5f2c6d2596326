"""`conversation_search`: run by the agent service."""

from services.tool_runner.builtin.tool import BuiltinTool, texts
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="conversation_search",
    tool_type=ToolType.LETTA_CORE,
    parallel=True,
    description="""\
Search the earlier messages of your conversations.

Give a text to look for, a span of time, or both; without a text, the messages of the span are returned.

Examples:
    conversation_search(query="birthday present")
    conversation_search(query="deployment", roles=["user"], start_date="2026-01-15", end_date="2026-01-20")""",
    properties={
        "query": {"type": "string", "description": "Text to look for. Leave it out to search by time alone."},
        "roles": texts("Only messages of these roles.", choices=("assistant", "user", "tool")),
        "limit": {"type": "integer", "description": "How many messages at most; default 5."},
        "start_date": {
            "type": "string",
            "description": 'Only messages since then: ISO 8601, "2026-01-31" or "2026-01-31T09:00".',
        },
        "end_date": {
            "type": "string",
            "description": "Only messages until then, same form; a date without a time includes that whole day.",
        },
    },
    required=(),
)
