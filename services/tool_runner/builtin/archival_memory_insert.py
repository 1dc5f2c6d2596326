"""`archival_memory_insert`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool, texts
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="archival_memory_insert",
    tool_type=ToolType.LETTA_CORE,
    description="""\
Store something in your archival memory, which is unlimited, permanent and searchable.

Write what will still make sense on its own later: a fact, a decision, a summary, not a fragment of talk. Tags make
it easier to find again.

Example:
    archival_memory_insert(content="2026-03-14: Ada decided to port the parser to Haskell.", tags=["decisions"])""",
    properties={
        "content": {"type": "string", "description": "What to store, understandable without its context."},
        "tags": texts('Categories to file it under, for example ["decisions", "project-x"].'),
    },
    required=("content",),
)
