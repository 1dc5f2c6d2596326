"""`semantic_search_files`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="semantic_search_files",
    tool_type=ToolType.LETTA_FILES_CORE,
    parallel=True,
    description="""\
Search all files of your folders by meaning and by words; passages come with the file's name and lines.

Describe what you look for rather than guess its wording. Open a file at the lines that were found to read more.

Example:
    semantic_search_files(query="how many days off after a child is born", limit=3)""",
    properties={
        "query": {"type": "string", "description": "What you are looking for, in natural language."},
        "limit": {"type": "integer", "description": "How many passages at most; default 5."},
    },
    required=("query",),
)
