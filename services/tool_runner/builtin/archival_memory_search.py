"""`archival_memory_search`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool, texts
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="archival_memory_search",
    tool_type=ToolType.LETTA_CORE,
    parallel=True,
    description="""\
Search your archival memory by meaning and by words.

Describe what you look for rather than guess its wording; narrow by tags or dates where you know them.

Example:
    archival_memory_search(query="what was decided about the parser", tags=["decisions"], top_k=3)""",
    properties={
        "query": {"type": "string", "description": "What you are looking for, in natural language."},
        "tags": texts("Only entries with these tags."),
        "tag_match_mode": {
            "type": "string",
            "enum": ["any", "all"],
            "description": 'Whether an entry needs "any" of the tags (the default) or "all" of them.',
        },
        "top_k": {"type": "integer", "description": "How many results at most; default 5."},
        "start_datetime": {
            "type": "string",
            "description": 'Only entries since then: ISO 8601, "2026-01-31" or "2026-01-31T09:00".',
        },
        "end_datetime": {
            "type": "string",
            "description": "Only entries until then, same form; a date without a time includes that whole day.",
        },
    },
    required=("query",),
)
