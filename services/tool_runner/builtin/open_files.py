"""`open_files`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="open_files",
    tool_type=ToolType.LETTA_FILES_CORE,
    description="""\
Bring files of your folders into view. They stay in view, in your prompt, until they are closed.

Only so many files may be open at once: when more are opened, those opened longest ago are closed. Of a long file only
a part is in view; open it again with another offset to see another part.

Examples:
    Open a file from its beginning:
        open_files(file_requests=[{"file_name": "handbook/holidays.md"}])
    See 100 lines of a long one, after the first 400, and close all others:
        open_files(file_requests=[{"file_name": "logs/app.log", "offset": 400, "length": 100}],
            close_all_others=true)""",
    properties={
        "file_requests": {
            "type": "array",
            "description": "The files to open.",
            "items": {
                "type": "object",
                "properties": {
                    "file_name": {"type": "string", "description": 'The name as your folders list it: "folder/name".'},
                    "offset": {
                        "type": "integer",
                        "description": "Lines with text to skip: 0 (default) begins with line 1, 400 with line 401.",
                    },
                    "length": {
                        "type": "integer",
                        "description": "Lines to show after the offset; default: as many as fit.",
                    },
                },
                "required": ["file_name"],
            },
        },
        "close_all_others": {
            "type": "boolean",
            "description": "Whether every other open file is closed; default false.",
        },
    },
    required=("file_requests",),
)
