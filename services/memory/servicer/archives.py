"""loci.memory.v1.ArchiveService."""

from typing import Any

from loci.memory.v1 import archive_service_pb2 as archive_pb
from services.common.context import current
from services.common.ids import to_public
from services.common.page_requests import page_by_id
from services.memory.archival.archives import checked_changes, checked_draft
from services.memory.archival.embedding_changes import EmbeddingChanges
from services.memory.archival.ports import ArchivalLists, ArchiveStore
from services.memory.convert import archives, ids
from services.memory.ports import Embedder
from services.memory.servicer.embedding_changes import EmbeddingChangeServicer
from services.memory.servicer.refusals import refusals

_ARCHIVES_PER_PAGE = 50
_CHECK_SECONDS = 10.0


class ArchiveServicer(EmbeddingChangeServicer):
    """loci.memory.v1.ArchiveService."""

    def __init__(
        self, store: ArchiveStore, lists: ArchivalLists, embedder: Embedder, changes: EmbeddingChanges
    ) -> None:
        super().__init__(changes)
        self._archives = store
        self._lists = lists
        self._embedder = embedder

    async def CreateArchive(
        self, request: archive_pb.CreateArchiveRequest, context: Any
    ) -> archive_pb.CreateArchiveResponse:
        caller = current()
        with refusals():
            draft = checked_draft(archives.archive_draft(request.archive))
        if draft.embedding and not draft.dimensions:
            await self._embedder.check(draft.embedding, _CHECK_SECONDS)
        archive = await self._archives.create(caller.organization_id, caller.user_id, draft)
        return archive_pb.CreateArchiveResponse(archive=archives.archive_message(archive))

    async def GetArchive(self, request: archive_pb.GetArchiveRequest, context: Any) -> archive_pb.GetArchiveResponse:
        archive = await self._archives.get(current().organization_id, ids.archive_id(request.archive_id))
        return archive_pb.GetArchiveResponse(archive=archives.archive_message(archive))

    async def ListArchives(
        self, request: archive_pb.ListArchivesRequest, context: Any
    ) -> archive_pb.ListArchivesResponse:
        with refusals():
            wanted, page = (
                archives.archive_list(request),
                page_by_id(request.page, "archive", _ARCHIVES_PER_PAGE, ascending=True),
            )
            found = await self._lists.archives(current().organization_id, wanted, page)
        return archive_pb.ListArchivesResponse(
            archives=[archives.archive_message(archive) for archive in found.items], next_page_token=found.next_token
        )

    async def UpdateArchive(
        self, request: archive_pb.UpdateArchiveRequest, context: Any
    ) -> archive_pb.UpdateArchiveResponse:
        caller, archive_id = current(), ids.archive_id(request.archive_id)
        with refusals():
            changes = checked_changes(archives.archive_changes(request.archive, request.update_mask.paths))
        archive = await self._archives.update(caller.organization_id, caller.user_id, archive_id, changes)
        return archive_pb.UpdateArchiveResponse(archive=archives.archive_message(archive))

    async def DeleteArchive(
        self, request: archive_pb.DeleteArchiveRequest, context: Any
    ) -> archive_pb.DeleteArchiveResponse:
        await self._archives.delete(current().organization_id, ids.archive_id(request.archive_id))
        return archive_pb.DeleteArchiveResponse()

    async def AttachArchive(
        self, request: archive_pb.AttachArchiveRequest, context: Any
    ) -> archive_pb.AttachArchiveResponse:
        agent_id, archive_id = ids.agent_id(request.agent_id), ids.archive_id(request.archive_id)
        await self._archives.attach(current().organization_id, agent_id, archive_id)
        return archive_pb.AttachArchiveResponse()

    async def DetachArchive(
        self, request: archive_pb.DetachArchiveRequest, context: Any
    ) -> archive_pb.DetachArchiveResponse:
        agent_id, archive_id = ids.agent_id(request.agent_id), ids.archive_id(request.archive_id)
        await self._archives.detach(current().organization_id, agent_id, archive_id)
        return archive_pb.DetachArchiveResponse()

    async def ListArchiveAgents(
        self, request: archive_pb.ListArchiveAgentsRequest, context: Any
    ) -> archive_pb.ListArchiveAgentsResponse:
        agents = await self._archives.agents_of(current().organization_id, ids.archive_id(request.archive_id))
        return archive_pb.ListArchiveAgentsResponse(agent_ids=[to_public("agent", agent_id) for agent_id in agents])
