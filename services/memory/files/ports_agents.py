"""What agents do with files, as a Protocol over plain values; adapters/files/agent_files.py implements it."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.common.paging import Page, PageOf
from services.memory.files.finding import KnownFile
from services.memory.files.model import Folder, TextPage
from services.memory.files.views import View
from services.memory.model import CallRecord, FileLimits


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
class Wanted:
    """A file to open, from `first_line` to `last_line` (None: as far as the limit goes), counted from 1."""

    file_id: UUID
    first_line: int = 1
    last_line: int | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """What came of opening files: each with its path, as asked; and the paths of those that were closed."""

    opened: Sequence[tuple[str, View]]
    closed: Sequence[str]


@dataclass(frozen=True, slots=True)
class Piece:
    """Where a passage stands that is a piece of a file."""

    path: str
    first_line: int
    last_line: int


class AgentFileStore(Protocol):
    """Folders of agents, and which of their files are open. Changes of one agent's are made one after the other."""

    async def attach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID, limits: FileLimits) -> None:
        """Opens as many of its files as still may be open, oldest first. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def detach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID) -> int:
        """How many folders are left. Raises NotFound (FOLDER_NOT_FOUND), FailedPrecondition (FOLDER_NOT_ATTACHED)."""

    async def folders(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Folder]]:
        """Of each agent that has some, in the order of attachment; one statement."""

    async def agents_of(self, organization_id: UUID, folder_id: UUID) -> Sequence[UUID]:
        """In the order of attachment. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def list(
        self, organization_id: UUID, agent_id: UUID, page: Page, *, is_open: bool | None
    ) -> PageOf[AgentFile]:
        """By the time of upload. Raises NotFound (FILE_NOT_FOUND) for an unknown cursor, Refused."""

    async def open(
        self,
        organization_id: UUID,
        agent_id: UUID,
        wanted: Sequence[Wanted],
        limits: FileLimits,
        *,
        close_others: bool = False,
        record: Callable[[Opening], CallRecord] | None = None,
    ) -> Opening:
        """Opens all of them or none, and keeps the record that is made of it in the same transaction.

        Raises Refused for more than may be open, NotFound (FILE_NOT_FOUND), FailedPrecondition (FILE_NOT_READY),
        CallRepeated.
        """

    async def close(self, organization_id: UUID, agent_id: UUID, file_id: UUID) -> None:
        """Raises NotFound (FILE_NOT_FOUND)."""

    async def close_all(self, organization_id: UUID, agent_id: UUID) -> Sequence[str]:
        """The paths of those that were closed."""

    async def named(self, organization_id: UUID, agent_id: UUID, names: Sequence[str]) -> Sequence[KnownFile]:
        """The agent's files that have one of these names, with or without folder."""

    async def files(self, organization_id: UUID, agent_id: UUID) -> Sequence[KnownFile]:
        """All of the agent's, by path."""

    def pages(
        self, organization_id: UUID, files: Sequence[KnownFile]
    ) -> AsyncGenerator[Sequence[tuple[KnownFile, TextPage]]]:
        """Their text in order, so much at a time as one may hold in memory."""

    async def pieces(self, organization_id: UUID, keys: Sequence[tuple[UUID, UUID]]) -> Mapping[UUID, Piece]:
        """Where passages stand in files, by their ids; asked for by folder and id."""
