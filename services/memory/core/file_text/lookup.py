"""Files by the names that a model gives them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from html import unescape
from uuid import UUID

from services.common.core.refusals import Refused
from services.memory.core.file_text.names import LONGEST_NAME, normal_form

_CLOSE = 5


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of an agent's folders. `path`: `folder/name`; `has_text`: it was parsed."""

    id: UUID
    folder_name: str
    name: str
    has_text: bool
    line_count: int
    char_count: int

    @property
    def path(self) -> str:
        """Returns `folder/name`, as agents call it."""
        return f"{self.folder_name}/{self.name}"


def bare(name: str) -> str:
    """Returns the name of a file without its folder's."""
    return name.partition("/")[2]


def spellings(name: str) -> tuple[str, ...]:
    """Returns a name as a model writes it, and as it may mean it: prompts show some characters as entities."""
    name = normal_form(name)
    return tuple(dict.fromkeys((name, unescape(name))))


def named(name: str, candidates: Sequence[KnownFile], others: Sequence[str]) -> KnownFile:
    """Returns the file of this name: `folder/name`, or the bare name where only one has it.

    `candidates`: the files that have the name, with or without folder; `others`: paths to suggest. Raises Refused,
    also for a file without text.
    """
    files = [file for file in candidates if file.path == name] or [file for file in candidates if file.name == name]
    if not files:
        raise Refused(
            "TOOL_REFUSED", f'There is no file "{name[:LONGEST_NAME]}" in your folders.{_instead(name, others)}'
        )
    if len(files) > 1:
        paths = " or ".join(f'"{file.path}"' for file in files)
        raise Refused("TOOL_REFUSED", f'Several files are called "{name}"; say which: {paths}.')
    if not files[0].has_text:
        raise Refused(
            "TOOL_REFUSED", f'"{files[0].path}" has no text to show: it is still being read, or could not be read.'
        )
    return files[0]


def _instead(name: str, others: Sequence[str]) -> str:
    close = get_close_matches(name, others, n=_CLOSE, cutoff=0.5)
    close += [path for path in others if name and name.lower() in path.lower() and path not in close]
    if close:
        return f" Close to it: {', '.join(close[:_CLOSE])}."
    if others:
        return f" Some that there are: {', '.join(others[:_CLOSE])}."
    return " No folder with files is attached to you."
