"""memory_apply_patch: a unified diff applied to a block's text. Pure.

Line numbers in `@@` headers are not believed, since models guess them: a hunk stands where its unchanged and
removed lines stand, and these must be found exactly once.
"""

from dataclasses import dataclass
from itertools import pairwise

from services.memory.core.blocks import Edit, refuse_line_numbers, without_nul
from services.memory.model import Operation, Refused

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines as they shall be found, and the lines that take their places."""

    old: tuple[str, ...]
    new: tuple[str, ...]


def patch(value: str, diff: str) -> Edit:
    """The text with every hunk applied, in order, all or none. Raises Refused."""
    lines = value.split("\n") if value else []
    touched: list[tuple[int, int]] = []
    for number, hunk in enumerate(parse(diff), start=1):
        at = _place(lines, hunk, number)
        grown = len(hunk.new) - len(hunk.old)
        touched = [(first + grown, last + grown) if first >= at else (first, last) for first, last in touched]
        touched.append((at, at + len(hunk.new)))
        lines[at : at + len(hunk.old)] = hunk.new
    first, last = min(first for first, _ in touched), max(last for _, last in touched)
    return Edit("\n".join(lines), first, last, Operation.PATCH)


def parse(diff: str) -> list[Hunk]:
    """The hunks of a unified diff; file headers are skipped, and without `@@` all is one hunk. Raises Refused."""
    diff = without_nul(diff)
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
    """Without the pair of lines that names the files, which looks like a change of a line that begins with dashes."""
    for at, (line, following) in enumerate(pairwise(lines)):
        if line.startswith("@@"):
            break
        if line.startswith("--- ") and following.startswith("+++ "):
            return lines[at + 2 :]
    return lines


def _hunk(body: list[str]) -> list[Hunk]:
    """The hunk of these lines, none where they only repeat the text."""
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


def _place(lines: list[str], hunk: Hunk, number: int) -> int:
    """The index of the line at which the hunk's old lines stand. Raises Refused unless there is just one."""
    if not hunk.old:
        if lines:
            raise Refused(
                "TOOL_REFUSED",
                f"Hunk {number} of the patch only adds lines. Add at least one unchanged line beside them, begun "
                'with " ", so that their place is known.',
            )
        return 0
    size = len(hunk.old)
    places = [at for at in range(len(lines) - size + 1) if tuple(lines[at : at + size]) == hunk.old]
    match places:
        case [at]:
            return at
        case []:
            raise Refused(
                "TOOL_REFUSED",
                f"Nothing was changed: the unchanged and removed lines of hunk {number} do not stand in the block like "
                f"this. They must match its lines exactly: {chr(10).join(hunk.old)[:_SHOWN]!r}",
            )
        case _:
            found = ", ".join(str(at + 1) for at in places[:20])
            raise Refused(
                "TOOL_REFUSED",
                f"Nothing was changed: the unchanged and removed lines of hunk {number} stand {len(places)} times in "
                f"the block (at lines {found}). Give more unchanged lines around the place you mean.",
            )
