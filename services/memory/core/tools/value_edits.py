"""The tools that change the value of one block. Pure."""

from collections.abc import Callable
from functools import partial

from services.memory.core.editing import diffs, edits
from services.memory.core.editing.edits import Edit
from services.memory.core.tools.arguments import Arguments

Operation = Callable[[str], Edit]

# tool -> what it does to the value of a block, the one that its argument "label" names
EDITS: dict[str, Callable[[Arguments], Operation]] = {
    "core_memory_append": lambda given: partial(edits.append, content=given.text("content")),
    "core_memory_replace": lambda given: partial(
        edits.replace_every, old=given.text("old_content"), new=given.text("new_content")
    ),
    "memory_insert": lambda given: partial(
        edits.insert, text=given.text("new_string"), line=given.integer("insert_line", -1)
    ),
    "memory_replace": lambda given: partial(
        edits.replace_one, old=given.text("old_string"), new=given.text("new_string")
    ),
    "memory_apply_patch": lambda given: partial(diffs.patch, diff=given.text("patch")),
    "memory_rethink": lambda given: partial(edits.rewrite, text=given.text("new_memory")),
    "rethink_memory": lambda given: partial(edits.rewrite, text=given.text("new_memory")),
    "rethink_user_memory": lambda given: partial(edits.rewrite, text=given.text("new_memory")),
}
# Whose block another argument names, or none.
_LABELS: dict[str, Callable[[Arguments], str]] = {
    "rethink_memory": lambda given: given.text("target_block_label"),
    "rethink_user_memory": lambda given: "human",
}


def label_of(tool_name: str, given: Arguments) -> str:
    """Of the block that the call means. Raises Refused."""
    read = _LABELS.get(tool_name)
    return given.text("label") if read is None else read(given)
