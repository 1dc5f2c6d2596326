"""loci.memory.v1.ArchiveService."""

from typing import Any

from loci.memory.v1 import archive_service_pb2 as archive_pb
from services.common.context import current
from services.common.ids import to_public
from services.memory.archives import convert
from services.memory.archives.model import checked_changes, checked_draft
from services.memory.core.ports.archives import ArchiveStore
from services.memory.core.ports.embedder import Embedder
from services.memory.core.ports.passages import ArchivalLists
from services.memory.embedding_changes.service import EmbeddingChanges
from services.memory.embedding_changes.servicer import EmbeddingChangeServicer
from services.memory.wire import fields, ids
from services.memory.wire.refusals import refusals

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
            draft = checked_draft(convert.archive_draft(request.archive))
        if draft.embedding and not draft.dimensions:
            await self._embedder.check(draft.embedding, _CHECK_SECONDS)
        archive = await self._archives.create(caller.organization_id, caller.user_id, draft)
        return archive_pb.CreateArchiveResponse(archive=convert.archive_message(archive))

    async def GetArchive(self, request: archive_pb.GetArchiveRequest, context: Any) -> archive_pb.GetArchiveResponse:
        archive = await self._archives.get(current().organization_id, ids.archive_id(request.archive_id))
        return archive_pb.GetArchiveResponse(archive=convert.archive_message(archive))

    async def ListArchives(
        self, request: archive_pb.ListArchivesRequest, context: Any
    ) -> archive_pb.ListArchivesResponse:
        with refusals():
            wanted, page = convert.archive_list(request), fields.page(request, "archive", _ARCHIVES_PER_PAGE)
            found = await self._lists.archives(current().organization_id, wanted, page)
        return archive_pb.ListArchivesResponse(
            archives=[convert.archive_message(archive) for archive in found.items], next_page_token=found.next_token
        )

    async def UpdateArchive(
        self, request: archive_pb.UpdateArchiveRequest, context: Any
    ) -> archive_pb.UpdateArchiveResponse:
        caller, archive_id = current(), ids.archive_id(request.archive_id)
        with refusals():
            changes = checked_changes(convert.archive_changes(request.archive, request.update_mask.paths))
        archive = await self._archives.update(caller.organization_id, caller.user_id, archive_id, changes)
        return archive_pb.UpdateArchiveResponse(archive=convert.archive_message(archive))

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
