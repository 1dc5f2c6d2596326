"""loci.memory.v1.ArchiveService."""

from typing import Any

from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import passage_pb2
from services.common.codec import Codec
from services.common.context import current
from services.common.ids import to_public, uuid7
from services.common.page_requests import page_by_id
from services.memory import wire
from services.memory.archives.model import (
    Archive,
    ArchiveDraft,
    ArchiveList,
    ArchiveSettings,
    validate_changes,
    validate_draft,
)
from services.memory.core.ports.passages import ArchiveStore, PassageLists
from services.memory.core.ports.search import Embedder
from services.memory.embedding_changes.service import EmbeddingChangeService
from services.memory.embedding_changes.servicer import EmbeddingChangeServicer

_ARCHIVES_PER_PAGE = 50
_CHECK_SECONDS = 10.0

_LISTS = Codec(ArchiveList, archive_pb.ListArchivesRequest)
_ARCHIVES = Codec(Archive, passage_pb2.Archive, leave=("model", "word_count"))
_DRAFTS = wire.settings(ArchiveDraft, passage_pb2.Archive, "ARCHIVE_INVALID", leave=("id",))
_SETTINGS = wire.settings(ArchiveSettings, passage_pb2.Archive, "ARCHIVE_INVALID")


class ArchiveServicer(EmbeddingChangeServicer):
    """loci.memory.v1.ArchiveService."""

    def __init__(
        self, store: ArchiveStore, lists: PassageLists, embedder: Embedder, changes: EmbeddingChangeService
    ) -> None:
        super().__init__(changes)
        self._archives = store
        self._lists = lists
        self._embedder = embedder

    async def CreateArchive(
        self, request: archive_pb.CreateArchiveRequest, context: Any
    ) -> archive_pb.CreateArchiveResponse:
        caller = current()
        draft = validate_draft(archive_draft(request.archive))
        if draft.embedding and not draft.dimensions:
            await self._embedder.check(draft.embedding, _CHECK_SECONDS)
        archive = await self._archives.create(caller.organization_id, caller.user_id, draft)
        return archive_pb.CreateArchiveResponse(archive=archive_message(archive))

    async def GetArchive(self, request: archive_pb.GetArchiveRequest, context: Any) -> archive_pb.GetArchiveResponse:
        archive = await self._archives.get(current().organization_id, wire.archive_id(request.archive_id))
        return archive_pb.GetArchiveResponse(archive=archive_message(archive))

    async def ListArchives(
        self, request: archive_pb.ListArchivesRequest, context: Any
    ) -> archive_pb.ListArchivesResponse:
        filters, page = (
            _LISTS.decode(request),
            page_by_id(request.page, "archive", _ARCHIVES_PER_PAGE, ascending=True),
        )
        result = await self._lists.archives(current().organization_id, filters, page)
        return archive_pb.ListArchivesResponse(
            archives=[archive_message(archive) for archive in result.items], next_page_token=result.next_token
        )

    async def UpdateArchive(
        self, request: archive_pb.UpdateArchiveRequest, context: Any
    ) -> archive_pb.UpdateArchiveResponse:
        caller, archive_id = current(), wire.archive_id(request.archive_id)
        changes = validate_changes(wire.changes(_SETTINGS, request.archive, request.update_mask.paths))
        archive = await self._archives.update(caller.organization_id, caller.user_id, archive_id, changes)
        return archive_pb.UpdateArchiveResponse(archive=archive_message(archive))

    async def DeleteArchive(
        self, request: archive_pb.DeleteArchiveRequest, context: Any
    ) -> archive_pb.DeleteArchiveResponse:
        await self._archives.delete(current().organization_id, wire.archive_id(request.archive_id))
        return archive_pb.DeleteArchiveResponse()

    async def AttachArchive(
        self, request: archive_pb.AttachArchiveRequest, context: Any
    ) -> archive_pb.AttachArchiveResponse:
        agent_id, archive_id = wire.agent_id(request.agent_id), wire.archive_id(request.archive_id)
        await self._archives.attach(current().organization_id, agent_id, archive_id)
        return archive_pb.AttachArchiveResponse()

    async def DetachArchive(
        self, request: archive_pb.DetachArchiveRequest, context: Any
    ) -> archive_pb.DetachArchiveResponse:
        agent_id, archive_id = wire.agent_id(request.agent_id), wire.archive_id(request.archive_id)
        await self._archives.detach(current().organization_id, agent_id, archive_id)
        return archive_pb.DetachArchiveResponse()

    async def ListArchiveAgents(
        self, request: archive_pb.ListArchiveAgentsRequest, context: Any
    ) -> archive_pb.ListArchiveAgentsResponse:
        agents = await self._archives.agents_of(current().organization_id, wire.archive_id(request.archive_id))
        return archive_pb.ListArchiveAgentsResponse(agent_ids=[to_public("agent", agent_id) for agent_id in agents])


def archive_draft(archive: passage_pb2.Archive) -> ArchiveDraft:
    """Returns an archive to create. Raises InvalidArgument (INVALID_ID), Refused (ARCHIVE_INVALID)."""
    return _DRAFTS.create(archive, id=wire.archive_id(archive.id) if archive.id else uuid7())


def archive_message(archive: Archive) -> passage_pb2.Archive:
    """Returns an archive on the wire."""
    return _ARCHIVES.encode(archive, dimensions=0 if archive.model is None else archive.model.dimensions)
