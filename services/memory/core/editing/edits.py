"""The edits that an agent's tools make of a block's value.

The rules of the tools are those of the reference API, with limits enforced, and with sentences from which a
model can recover. An edit is a function of the value alone, so it can be applied again when the block
changed meanwhile.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.memory.blocks.model import LARGEST_LIMIT, Block, Operation

# Of a text that occurs more often, nobody needs to know how often.
_MOST = 20


def starts(value: str, old: str) -> list[int]:
    """Returns where `old` begins, also overlapping: each is a place that the model may mean. A few at most."""
    places: list[int] = []
    at = value.find(old)
    while at >= 0 and len(places) <= _MOST:
        places.append(at)
        at = value.find(old, at + 1)
    return places


def count_and_lines(value: str, places: list[int]) -> str:
    """Returns the number and lines of the places, for a sentence."""
    times = f"{len(places)} times" if len(places) <= _MOST else f"more than {_MOST} times"
    lines = ", ".join(str(value.count("\n", 0, start) + 1) for start in places[:_MOST])
    return f"{times} (on lines {lines})"


# A value up to this long is shown whole to the model after an edit, otherwise the lines around the change.
_SHOWN_WHOLE = 2_000
_SHOWN_AROUND = 4
# "12→ text" and "Line 12: text": the two ways in which a prompt numbers the lines of a block. Blanks of this line
# alone: over those of all lines that follow, a text of blank lines would take quadratic time.
_LINE_NUMBER = re.compile(r"^[^\S\n]*(?:\d+→|Line \d+: )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Edit:
    """A new value and the lines of it that are new: from `first` (0-based) up to but not including `last`."""

    value: str
    first: int
    last: int
    operation: Operation


def append(value: str, content: str) -> Edit:
    """Puts `content` on a new line at the end (core_memory_append)."""
    content = storable(content)
    before = value + "\n" if value else ""
    return _edit(before, content, "", Operation.APPEND)


def replace_every(value: str, old: str, new: str) -> Edit:
    """Replaces every occurrence of `old`, which must be there (core_memory_replace). An empty `new` deletes."""
    old, new = _as_in(value, storable(old), storable(new))
    if not old:
        raise Refused("TOOL_REFUSED", "old_content is empty. Give the exact text that shall be replaced.")
    before, separator, after = value.partition(old)
    if not separator:
        raise _not_found("old_content")
    # Before it is made: of a short text that is everywhere and a long one it would fill the memory of the service.
    length = len(value) + value.count(old) * (len(new) - len(old))
    if length > LARGEST_LIMIT:
        raise Refused(
            "TOOL_REFUSED",
            f"Nothing was changed: the block would be {length} characters long, and none may be longer than "
            f"{LARGEST_LIMIT}. Give more of the text around the place you mean, or write less.",
        )
    return _edit(before, new, after.replace(old, new), Operation.REPLACE)


def replace_one(value: str, old: str, new: str) -> Edit:
    """Replaces the one occurrence of `old` (memory_replace). Where tabs alone prevent a match, they become spaces."""
    old, new = _as_in(value, storable(old), storable(new))
    if not old:
        raise Refused("TOOL_REFUSED", "old_string is empty. Give the exact text that shall be replaced.")
    refuse_line_numbers("old_string", old)
    refuse_line_numbers("new_string", new)
    if old not in value and old.expandtabs() in value.expandtabs():
        value, old, new = value.expandtabs(), old.expandtabs(), new.expandtabs()
    match starts(value, old):
        case []:
            raise _not_found("old_string")
        case [start]:
            return _edit(value[:start], new, value[start + len(old) :], Operation.REPLACE)
        case places:
            raise Refused(
                "TOOL_REFUSED",
                f"old_string occurs {count_and_lines(value, places)} and must match exactly once. "
                "Give more of the text around the place you mean.",
            )


def insert(value: str, text: str, line: int, name: str = "new_string") -> Edit:
    """Puts `text` as new lines after line `line` (memory_insert): 0 first, -1 last. name: of the argument `text`."""
    text = storable(text)
    refuse_line_numbers(name, text)
    lines = value.split("\n") if value else []
    if not -1 <= line <= len(lines):
        raise Refused(
            "TOOL_REFUSED",
            f"insert_line is {line}, but the block has {len(lines)} lines. "
            f"Give 0 for the beginning, -1 for the end, or a line number up to {len(lines)}.",
        )
    at = len(lines) if line == -1 else line
    before = "".join(f"{part}\n" for part in lines[:at])
    after = "".join(f"\n{part}" for part in lines[at:])
    return _edit(before, text, after, Operation.INSERT)


def rewrite(value: str, text: str, *, trusted: bool = False) -> Edit:
    """Puts `text` in the place of all (memory_rethink and its kin). trusted: lines may begin like numbered ones."""
    text = storable(text)
    if not trusted:
        refuse_line_numbers("new_memory", text)
    return _edit("", text, "", Operation.REWRITE)


def apply_edit(block: Block, operation: Callable[[str], Edit]) -> tuple[Block, Edit]:
    """Returns the block after a tool's edit. Raises Refused when it is read-only or would be over its limit."""
    if block.read_only:
        raise Refused("TOOL_REFUSED", f'The memory block "{block.label}" is read-only; tools cannot change it.')
    edit = _edited(block.value, operation)
    over = len(edit.value) - block.limit
    if over > 0:
        raise Refused(
            "TOOL_REFUSED",
            f'Nothing was changed: the memory block "{block.label}" would be {len(edit.value)} characters '
            f"long, and its limit is {block.limit}. Shorten it by at least {over} characters: write less, or "
            "remove something from the block first.",
        )
    return replace(block, value=edit.value), edit


def _edited(value: str, operation: Callable[[str], Edit]) -> Edit:
    """Returns the edit of a value. What does not match it may match its plain form: models write no other line ends and
    letters. Line ends that were all CRLF are so afterwards."""
    try:
        return operation(value)
    except Refused:
        plain = plain_form(value)
        if plain == value:
            raise
        edit = operation(plain)
    breaks = value.count("\r\n")
    return replace(edit, value=edit.value.replace("\n", "\r\n")) if breaks == value.count("\n") > 0 else edit


def plain_form(text: str) -> str:
    """Returns a text with LF alone as line ends, and with composed letters (NFC)."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))


def _as_in(value: str, old: str, new: str) -> tuple[str, str]:
    """Returns the texts in the form in which the value has the first, if it has it in any."""
    if old in value or plain_form(old) not in value:
        return old, new
    return plain_form(old), new.replace("\r\n", "\n")


def unknown_label(label: str, labels: Iterable[str]) -> Refused:
    """Returns the refusal for a model that names a block which the agent does not have."""
    known = ", ".join(labels)
    there = f"The blocks are: {known}." if known else "This agent has no memory blocks."
    return Refused("TOOL_REFUSED", f'There is no memory block "{label[:200]}". {there}')


def report(block: Block, edit: Edit) -> str:
    """Returns what a model reads after an edit: the block's new text, or of a long block what is around the change."""
    if len(block.value) <= _SHOWN_WHOLE:
        return block.value
    head = f'The memory block "{block.label}" was changed ({len(block.value)} of {block.limit} characters).'
    lines = block.value.split("\n")
    first, last = max(0, edit.first - _SHOWN_AROUND), min(len(lines), edit.last + _SHOWN_AROUND)
    excerpt = "\n".join(lines[first:last])
    if len(excerpt) > _SHOWN_WHOLE:
        half = _SHOWN_WHOLE // 2
        excerpt = f"{excerpt[:half]}\n[{len(excerpt) - 2 * half} characters not shown]\n{excerpt[-half:]}"
    return f"{head} Lines {first + 1} to {last} of {len(lines)} now read:\n{excerpt}"


def _edit(before: str, new: str, after: str, operation: Operation) -> Edit:
    first = before.count("\n")
    return Edit(before + new + after, first, first + new.count("\n") + 1, operation)


def _not_found(name: str) -> Refused:
    return Refused(
        "TOOL_REFUSED",
        f"{name} does not occur in the block. It must match the block's present text exactly, "
        "with its spaces and line breaks.",
    )


def refuse_line_numbers(name: str, text: str) -> None:
    """Raises Refused where a text carries the numbers that a prompt shows beside the lines of a block."""
    if number := _LINE_NUMBER.search(text):
        raise Refused(
            "TOOL_REFUSED",
            f"{name} has a line number in it ({number.group().strip()!r}). "
            "Line numbers are only shown for orientation; leave them out.",
        )
