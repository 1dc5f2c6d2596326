"""Files and folders as agents see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.memory.core.file_text.views import View


@dataclass(frozen=True, slots=True)
class DirectoryFile:
    """A file as the prompt shows it. `status` as in files.model.FileStatus; `visible_content` is empty unless open."""

    file_id: UUID
    name: str
    status: int
    is_open: bool
    visible_content: str = ""


@dataclass(frozen=True, slots=True)
class Directory:
    """A folder as the prompt shows it: its open files, and the others by name as far as they are listed."""

    name: str
    description: str
    instructions: str
    files: tuple[DirectoryFile, ...]
    file_count: int


@dataclass(frozen=True, slots=True)
class FileLimits:
    """The limits of an agent's view: so many files, so many characters of each."""

    most_open: int = 5
    view_chars: int = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFile:
    """A file as one agent sees it. `view` is None when it is not open; `accessed_at`, when it never was."""

    file_id: UUID
    path: str
    folder_id: UUID
    folder_name: str
    created_at: datetime
    accessed_at: datetime | None
    view: View | None


@dataclass(frozen=True, slots=True)
class FileRange:
    """A file to open, from `first_line` to `last_line` (None: as far as the limit goes), counted from 1."""

    file_id: UUID
    first_line: int = 1
    last_line: int | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """The result of opening files: each view with its path, in the order of the request; the paths that were closed."""

    opened: Sequence[tuple[str, View]]
    closed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Piece:
    """The place in a file of a passage that is a piece of it."""

    path: str
    first_line: int
    last_line: int
