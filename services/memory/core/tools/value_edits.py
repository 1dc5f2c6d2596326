"""The tools that change the value of one block. Pure."""

from collections.abc import Callable
from functools import partial

from services.common.core.storable import storable_name
from services.memory.core.editing import diffs, edits
from services.memory.core.editing.edits import Edit
from services.memory.core.tools.arguments import Arguments

Operation = Callable[[str], Edit]

# tool -> what it does to the value of a block, the one that its argument "label" names
EDITS: dict[str, Callable[[Arguments], Operation]] = {
    "core_memory_append": lambda arguments: partial(edits.append, content=arguments.text("content")),
    "core_memory_replace": lambda arguments: partial(
        edits.replace_every, old=arguments.text("old_content"), new=arguments.text("new_content")
    ),
    "memory_insert": lambda arguments: partial(
        edits.insert, text=arguments.text("new_string"), line=arguments.integer("insert_line", -1)
    ),
    "memory_replace": lambda arguments: partial(
        edits.replace_one, old=arguments.text("old_string"), new=arguments.text("new_string")
    ),
    "memory_apply_patch": lambda arguments: partial(diffs.patch, diff=arguments.text("patch")),
    "memory_rethink": lambda arguments: partial(edits.rewrite, text=arguments.text("new_memory")),
    "rethink_memory": lambda arguments: partial(edits.rewrite, text=arguments.text("new_memory")),
    "rethink_user_memory": lambda arguments: partial(edits.rewrite, text=arguments.text("new_memory")),
}
# Whose block another argument names, or none.
_LABELS: dict[str, Callable[[Arguments], str]] = {
    "rethink_memory": lambda arguments: arguments.text("target_block_label"),
    "rethink_user_memory": lambda arguments: "human",
}


def label_of(tool_name: str, arguments: Arguments) -> str:
    """Returns the label of the block that the call means. Raises Refused."""
    read = _LABELS.get(tool_name)
    return storable_name(arguments.text("label")) if read is None else read(arguments)
