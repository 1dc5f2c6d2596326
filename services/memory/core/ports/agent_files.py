"""The store of what agents have open."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.memory.agent_files.model import AgentFile, FileLimits, FileRange, Opening, Piece
from services.memory.agent_tools.model import CallRecord
from services.memory.core.file_text.lookup import KnownFile
from services.memory.files.model import TextPage
from services.memory.folders.model import Folder


class AgentFileStore(Protocol):
    """Folders of agents, and which of their files are open. Changes of one agent's are made one after the other."""

    async def attach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID, limits: FileLimits) -> None:
        """Opens as many of its files as still may be open, oldest first. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def detach(self, organization_id: UUID, agent_id: UUID, folder_id: UUID) -> int:
        """Returns how many are left. Raises NotFound (FOLDER_NOT_FOUND), FailedPrecondition (FOLDER_NOT_ATTACHED)."""

    async def folders(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Folder]]:
        """Returns those of each agent that has some, in the order of attachment; in one statement."""

    async def agents_of(self, organization_id: UUID, folder_id: UUID) -> Sequence[UUID]:
        """Returns agents in the order of attachment. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def list(
        self, organization_id: UUID, agent_id: UUID, page: Page, *, is_open: bool | None
    ) -> PageOf[AgentFile]:
        """Returns files by the time of upload. Raises NotFound (FILE_NOT_FOUND) for an unknown cursor, Refused."""

    async def open(
        self,
        organization_id: UUID,
        agent_id: UUID,
        ranges: Sequence[FileRange],
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
        """Returns the paths of those that were closed."""

    async def named(self, organization_id: UUID, agent_id: UUID, names: Sequence[str]) -> Sequence[KnownFile]:
        """Returns the agent's files that have one of these names, with or without folder."""

    async def files(self, organization_id: UUID, agent_id: UUID) -> Sequence[KnownFile]:
        """Returns all of the agent's, by path."""

    def pages(
        self, organization_id: UUID, files: Sequence[KnownFile]
    ) -> AsyncGenerator[Sequence[tuple[KnownFile, TextPage]]]:
        """Yields their text in order, as much at a time as may be held in memory."""

    async def pieces(self, organization_id: UUID, keys: Sequence[tuple[UUID, UUID]]) -> Mapping[UUID, Piece]:
        """Returns where passages stand in files, by their ids; asked for by folder and id."""
