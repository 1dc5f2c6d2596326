"""`memory_apply_patch`: run by the memory service."""

from services.tool_runner.builtin.tool import BuiltinTool
from services.tool_runner.core.model import ToolType

TOOL = BuiltinTool(
    name="memory_apply_patch",
    tool_type=ToolType.LETTA_MEMORY_CORE,
    description="""\
Change several places of your memory at once, by a unified diff.

Begin unchanged lines with a space, removed lines with "-" and added lines with "+"; begin each further place with a
line "@@". The unchanged and removed lines of a place must stand in the block exactly so, and only once: give enough of
them. Leave out the line numbers that are shown beside the text. Either all of the patch is applied or nothing.

Without headers the patch is about the block that the label names. For several blocks begin each part with one of these
lines: "*** Update Block: <label>" (then perhaps "*** Move to: <new label>"), "*** Add Block: <label>" with the text as
added lines, "*** Delete Block: <label>".

Example:
    memory_apply_patch(label="human", patch="@@\\n Name: Ada\\n-Lives in Rome\\n+Lives in Oslo\\n@@\\n-Has a cat")""",
    properties={
        "label": {"type": "string", "description": "Label of the block to change, where the patch has no headers."},
        "patch": {"type": "string", "description": 'The diff: lines begun with a space, "-", "+" or "@@".'},
    },
    required=("label", "patch"),
)
