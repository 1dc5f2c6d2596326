"""`grep_files`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="grep_files",
    tool_type=ToolType.LETTA_FILES_CORE,
    parallel=True,
    description="""\
Find the lines in all files of your folders that match a regular expression, with their numbers.

A match stays within one line. The syntax is that of RE2: the usual one, without lookahead, lookbehind and
backreferences. Case is ignored, unless (?-i) stands at the beginning. Matches come 20 at a time; the answer begins with
how many there are and ends with how to go on. Lines without text have no number.

Examples:
    grep_files(pattern="parental leave", include="handbook/*.md")
    grep_files(pattern="def \\\\w+_total", include="\\\\.py$", context_lines=3)""",
    properties={
        "pattern": {"type": "string", "description": "The regular expression that a line must match somewhere."},
        "include": {
            "type": "string",
            "description": 'Only files whose name, "folder/name", matches: a glob as "*.md", or a regular expression.',
        },
        "context_lines": {
            "type": "integer",
            "description": "Lines to show before and after each match; default 1, at most 10.",
        },
        "offset": {"type": "integer", "description": "Matches to skip, to go on where an answer ended; default 0."},
    },
    required=("pattern",),
)
