"""The tools that every tenant has. Add one: a file with `TOOL` in it, and its line here."""

from services.tool_runner.builtin import (
    archival_memory_insert,
    archival_memory_search,
    conversation_search,
    core_memory_append,
    core_memory_replace,
    finish_rethinking_memory,
    grep_files,
    memory,
    memory_apply_patch,
    memory_finish_edits,
    memory_insert,
    memory_replace,
    memory_rethink,
    open_files,
    rethink_memory,
    rethink_user_memory,
    semantic_search_files,
    send_message,
)
from services.tool_runner.builtin.tool import BuiltinTool

BUILTIN_TOOLS: tuple[BuiltinTool, ...] = (
    memory_insert.TOOL,
    memory_replace.TOOL,
    memory_rethink.TOOL,
    memory_apply_patch.TOOL,
    memory.TOOL,
    memory_finish_edits.TOOL,
    core_memory_append.TOOL,
    core_memory_replace.TOOL,
    rethink_memory.TOOL,
    rethink_user_memory.TOOL,
    finish_rethinking_memory.TOOL,
    archival_memory_insert.TOOL,
    archival_memory_search.TOOL,
    conversation_search.TOOL,
    send_message.TOOL,
    open_files.TOOL,
    grep_files.TOOL,
    semantic_search_files.TOOL,
)
