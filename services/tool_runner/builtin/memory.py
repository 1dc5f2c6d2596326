"""`memory`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="memory",
    tool_type=ToolType.LETTA_MEMORY_CORE,
    description="""\
Manage your memory blocks like files under "/memories/": the path of a block is "/memories/" and its label.

Commands, each with the arguments it needs:
    create: a new block at path, with file_text as its text and a description of what it is for.
    str_replace: put new_string in the place of old_string, which must occur exactly once in the block at path.
    insert: put insert_text into the block at path after the line insert_line (0 for the top, -1 for the end).
    delete: detach the block at path from your memory.
    rename: give the block at old_path the path new_path; or give the block at path a new description.

Leave out the line numbers that are shown beside the text.

Examples:
    memory(command="create", path="/memories/projects", description="What Ada works on", file_text="- A compiler")
    memory(command="str_replace", path="/memories/projects", old_string="A compiler", new_string="A garbage collector")
    memory(command="insert", path="/memories/projects", insert_line=-1, insert_text="- A parser")
    memory(command="rename", old_path="/memories/projects", new_path="/memories/work")
    memory(command="rename", path="/memories/work", description="Ada's work, finished and unfinished")
    memory(command="delete", path="/memories/work")""",
    properties={
        "command": {
            "type": "string",
            "enum": ["create", "str_replace", "insert", "delete", "rename"],
            "description": "What to do.",
        },
        "path": {"type": "string", "description": "The block's path, for every command but a rename to another path."},
        "file_text": {"type": "string", "description": "create: the new block's text."},
        "description": {"type": "string", "description": "create, rename: what the block is for."},
        "old_string": {"type": "string", "description": "str_replace: the text to replace; must occur exactly once."},
        "new_string": {"type": "string", "description": "str_replace: the text to put in its place; empty deletes."},
        "insert_line": {
            "type": "integer",
            "description": "insert: line after which the text goes: 0 for the top, -1 (the default) for the end.",
        },
        "insert_text": {"type": "string", "description": "insert: the text to insert."},
        "old_path": {"type": "string", "description": "rename: the path that the block has."},
        "new_path": {"type": "string", "description": "rename: the path that it shall have."},
    },
    required=("command",),
)
