"""The tool `memory`: an agent's blocks as files, of which it creates, changes, renames and deletes some. Pure.

A path is "/memories/<label>" or only the label; labels may have slashes in them. The commands and their arguments are
those of the reference API.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from services.common.core.refusals import Refused
from services.common.core.storable import storable_name
from services.memory.agents.model import AgentMemory
from services.memory.blocks.model import Block, BlockDraft, Operation, validate
from services.memory.core.editing import edits, patches
from services.memory.core.editing.edits import Edit
from services.memory.core.editing.patches import Plan
from services.memory.core.tools.arguments import Arguments

# It stands in the prompt beside the text, which has a limit.
_LONGEST_DESCRIPTION = 5_000
COMMANDS = ("create", "str_replace", "insert", "delete", "rename")


@dataclass(frozen=True, slots=True)
class EditCommand:
    """A change of the value of one block."""

    label: str
    operation: Callable[[str], Edit]


@dataclass(frozen=True, slots=True)
class PlanCommand:
    """A change of the agent's blocks."""

    plan: Callable[[AgentMemory], Plan]


def command(arguments: Arguments, mint: Callable[[], UUID]) -> EditCommand | PlanCommand:
    """Parses the call. Raises Refused."""
    arguments.text("command")
    match arguments.choice("command", COMMANDS, ""):
        case "create":
            draft = BlockDraft(
                id=mint(),
                label=_label(arguments, "path"),
                value=arguments.optional_text("file_text") or "",
                description=_description(arguments),
            )
            return PlanCommand(partial(_create, draft=draft))
        case "str_replace":
            old, new = arguments.text("old_string"), arguments.optional_text("new_string") or ""
            return EditCommand(_label(arguments, "path"), partial(edits.replace_one, old=old, new=new))
        case "insert":
            text, line = arguments.text("insert_text"), arguments.integer("insert_line", -1)
            return EditCommand(
                _label(arguments, "path"), partial(edits.insert, text=text, line=line, name="insert_text")
            )
        case "delete":
            return PlanCommand(partial(_delete, label=_label(arguments, "path")))
        case _:
            return PlanCommand(_rename(arguments))


def _label(arguments: Arguments, name: str) -> str:
    path = arguments.text(name)
    label = storable_name(path).strip().removeprefix("/").removeprefix("memories/")
    if not label:
        raise Refused("TOOL_REFUSED", f'{name} is {path[:80]!r}, which names no block. Write "/memories/<label>".')
    return label


def _description(arguments: Arguments) -> str | None:
    text = arguments.optional_text("description")
    if text is not None and len(text) > _LONGEST_DESCRIPTION:
        raise Refused(
            "TOOL_REFUSED",
            f"Nothing was changed: the description is {len(text)} characters long, and it may have at most "
            f"{_LONGEST_DESCRIPTION}. Say what the block is for; what it is to hold belongs into its text.",
        )
    return text


def _create(memory: AgentMemory, draft: BlockDraft) -> Plan:
    if any(block.label == draft.label for block in memory.blocks):
        raise Refused(
            "TOOL_REFUSED",
            f'Nothing was changed: there is a memory block "{draft.label}" already. Change it with str_replace or '
            "insert, or choose another path.",
        )
    edits.refuse_line_numbers("file_text", draft.value)
    draft = validate(draft)
    message = f'The memory block "{draft.label}" was created ({len(draft.value)} of {draft.limit} characters).'
    return Plan(created=[draft], messages=[message])


def _delete(memory: AgentMemory, label: str) -> Plan:
    block = _find_renamable(memory, label)
    message = f'The memory block "{label}" was detached: it is not part of your memory any more.'
    return Plan(detached=[block.id], messages=[message])


def _rename(arguments: Arguments) -> Callable[[AgentMemory], Plan]:
    """Parses a new label (old_path, new_path), a new description (path, description), or both."""
    old = _label(arguments, "path" if arguments.optional_text("old_path") is None else "old_path")
    new = None if arguments.optional_text("new_path") is None else _label(arguments, "new_path")
    description = _description(arguments)
    if new is None and description is None:
        raise Refused("TOOL_REFUSED", "rename changes nothing: give new_path, description or both.")
    return partial(_plan_rename, label=old, new=new, description=description)


def _plan_rename(memory: AgentMemory, label: str, new: str | None, description: str | None) -> Plan:
    block = _find(memory, label) if new is None else _find_renamable(memory, label)
    messages = []
    after = block
    if new is not None:
        if any(other.label == new and other.id != block.id for other in memory.blocks):
            raise Refused("TOOL_REFUSED", f'Nothing was changed: there is another memory block "{new}".')
        after = replace(after, label=new)
        messages.append(f'The memory block "{label}" is now labelled "{new}".')
    if description is not None:
        after = replace(after, description=description)
        messages.append(f'The description of the memory block "{after.label}" was changed.')
    after = validate(after)
    return Plan(edited={} if after == block else {block.id: after}, messages=messages, operation=Operation.SET)


def _find(memory: AgentMemory, label: str) -> Block:
    for block in memory.blocks:
        if block.label == label:
            patches.refuse_read_only(block)
            return block
    raise edits.unknown_label(label, (block.label for block in memory.blocks))


def _find_renamable(memory: AgentMemory, label: str) -> Block:
    block = _find(memory, label)
    patches.refuse_unowned(block, memory)
    return block
