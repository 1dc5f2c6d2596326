"""memory_apply_patch: a unified diff applied to a block's text. Pure.

Line numbers in `@@` headers are not believed, since models guess them: a hunk stands where its unchanged and
removed lines stand, and these must be found exactly once.
"""

from dataclasses import dataclass
from itertools import pairwise

from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.memory.blocks.model import Operation
from services.memory.core.editing.edits import Edit, count_and_lines, refuse_line_numbers, starts

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines as they shall be found, and the lines that take their places."""

    old: tuple[str, ...]
    new: tuple[str, ...]


def patch(value: str, diff: str) -> Edit:
    """Returns the text with every hunk applied, in order, all or none. Raises Refused."""
    text = f"\n{value}\n" if value else "\n"
    first, last = len(text), 0
    for number, hunk in enumerate(parse(diff), start=1):
        old, new = _frame(hunk.old), _frame(hunk.new)
        at = _place(text, old, hunk, number)
        line = text.count("\n", 0, at)
        if last > line:
            last += len(hunk.new) - len(hunk.old)
        first, last = min(first, line), max(last, line + len(hunk.new))
        text = text[:at] + new + text[at + len(old) :]
    return Edit(text[1:-1], first, last, Operation.PATCH)


def _frame(lines: tuple[str, ...]) -> str:
    """Puts a line break before each line and after the last: what is found in a text like this is whole lines."""
    return "\n".join(("", *lines, ""))


def parse(diff: str) -> list[Hunk]:
    """Parses the hunks of a unified diff; skips file headers; without `@@` all is one hunk. Raises Refused."""
    diff = storable(diff)
    if "\n*** " in f"\n{diff}":
        raise Refused(
            "TOOL_REFUSED",
            'Lines that begin with "*** " are not part of a unified diff. For several blocks begin each part with '
            '"*** Update Block: <label>", "*** Add Block: <label>" or "*** Delete Block: <label>".',
        )
    hunks: list[Hunk] = []
    body: list[str] = []
    for line in _without_headers(diff.strip("\n").split("\n")):
        if line.startswith("@@"):
            hunks += _hunk(body)
            body = []
        elif not line.startswith("\\"):  # "\\ No newline at end of file"
            body.append(line)
    hunks += _hunk(body)
    if not hunks:
        raise Refused(
            "TOOL_REFUSED",
            'The patch changes nothing. Begin removed lines with "-", added lines with "+" and unchanged lines '
            'with " ".',
        )
    return hunks


def _without_headers(lines: list[str]) -> list[str]:
    """Drops the pair of lines that names the files, which looks like a change of a line that begins with dashes."""
    for at, (line, following) in enumerate(pairwise(lines)):
        if line.startswith("@@"):
            break
        if line.startswith("--- ") and following.startswith("+++ "):
            return lines[at + 2 :]
    return lines


def _hunk(body: list[str]) -> list[Hunk]:
    """Returns the hunk of these lines, none where they only repeat the text."""
    old: list[str] = []
    new: list[str] = []
    for line in body:
        sign, text = line[:1], line[1:]
        match sign:
            case "-":
                old.append(text)
            case "+":
                new.append(text)
            case " " | "":  # an empty line lost the space that it began with
                old.append(text)
                new.append(text)
            case _:
                raise Refused(
                    "TOOL_REFUSED",
                    f'Every line of a patch begins with " ", "-", "+" or "@@"; this one does not: {line[:_SHOWN]!r}',
                )
    refuse_line_numbers("patch", "\n".join(old + new))
    return [Hunk(tuple(old), tuple(new))] if old != new else []


def _place(text: str, old: str, hunk: Hunk, number: int) -> int:
    """Finds where the hunk's old lines stand in the text, both framed. Raises Refused unless that is one place."""
    if not hunk.old and text != "\n":
        raise Refused(
            "TOOL_REFUSED",
            f"Hunk {number} of the patch only adds lines. Add at least one unchanged line beside them, begun "
            'with " ", so that their place is known.',
        )
    match starts(text, old):
        case [at]:
            return at
        case []:
            raise Refused(
                "TOOL_REFUSED",
                f"Nothing was changed: the unchanged and removed lines of hunk {number} do not stand in the block like "
                f"this. They must match its lines exactly: {chr(10).join(hunk.old)[:_SHOWN]!r}",
            )
        case places:
            raise Refused(
                "TOOL_REFUSED",
                f"Nothing was changed: the unchanged and removed lines of hunk {number} stand in the block "
                f"{count_and_lines(text, places)}. Give more unchanged lines around the place you mean.",
            )
