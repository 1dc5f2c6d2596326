"""The tools that every tenant has. Add one: a file with `TOOL` in it, and its line here."""

from services.tool_runner.builtin import (
    archival_memory_insert,
    archival_memory_search,
    conversation_search,
    core_memory_append,
    core_memory_replace,
    memory_insert,
    memory_replace,
)
from services.tool_runner.builtin.tool import BuiltinTool

BUILTIN_TOOLS: tuple[BuiltinTool, ...] = (
    memory_insert.TOOL,
    memory_replace.TOOL,
    core_memory_append.TOOL,
    core_memory_replace.TOOL,
    archival_memory_insert.TOOL,
    archival_memory_search.TOOL,
    conversation_search.TOOL,
)
