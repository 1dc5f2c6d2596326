"""loci.memory.v1.ArchiveService."""

from collections.abc import Sequence
from typing import Any

from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import archive_service_pb2 as archive_service_pb
from loci.memory.v1 import passage_pb2
from services.common.context import current
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public, uuid7
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp
from services.memory import wire
from services.memory.archives.model import (
    Archive,
    ArchiveChanges,
    ArchiveDraft,
    ArchiveList,
    validate_changes,
    validate_draft,
)
from services.memory.core.ports.archives import ArchiveStore
from services.memory.core.ports.embedder import Embedder
from services.memory.core.ports.passages import PassageLists
from services.memory.core.storable import without_nul
from services.memory.embedding_changes.service import EmbeddingChangeService
from services.memory.embedding_changes.servicer import EmbeddingChangeServicer

_ARCHIVES_PER_PAGE = 50
_CHECK_SECONDS = 10.0


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
            archive_list(request),
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
        changes = validate_changes(archive_changes(request.archive, request.update_mask.paths))
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


def archive_draft(draft: archive_service_pb.ArchiveDraft) -> ArchiveDraft:
    """Raises InvalidArgument (INVALID_ID), Refused (ARCHIVE_INVALID)."""
    return ArchiveDraft(
        id=from_public("archive", draft.id) if draft.id else uuid7(),
        name=draft.name,
        description=wire.text(draft, "description"),
        embedding=without_nul(draft.embedding),
        metadata=wire.json_object(draft.metadata_json, "ARCHIVE_INVALID"),
        dimensions=draft.dimensions,
    )


def archive_changes(draft: archive_service_pb.ArchiveDraft, paths: Sequence[str]) -> ArchiveChanges:
    """The fields of a mask. Raises InvalidArgument (UPDATE_MASK_INVALID), Refused (ARCHIVE_INVALID)."""
    changes = ArchiveChanges()
    for path in paths:
        match path:
            case "name":
                changes["name"] = draft.name
            case "description":
                changes["description"] = wire.text(draft, "description")
            case "metadata_json":
                changes["metadata"] = wire.json_object(draft.metadata_json, "ARCHIVE_INVALID")
            case _:
                raise InvalidArgument(
                    f"the field {path!r} of an archive cannot be changed here", reason="UPDATE_MASK_INVALID"
                )
    return changes


def archive_list(request: archive_service_pb.ListArchivesRequest) -> ArchiveList:
    """What a list asks for. Raises InvalidArgument (INVALID_ID)."""
    return ArchiveList(
        name=wire.text(request, "name"),
        agent_id=wire.agent_id(request.agent_id) if request.HasField("agent_id") else None,
    )


def archive_message(archive: Archive) -> passage_pb2.Archive:
    """An archive on the wire."""
    return passage_pb2.Archive(
        id=to_public("archive", archive.id),
        name=archive.name,
        description=archive.description,
        embedding=archive.embedding or "",
        dimensions=0 if archive.model is None else archive.model.dimensions,
        metadata_json=wire.json_text(archive.metadata),
        created_at=timestamp(archive.created_at),
        updated_at=timestamp(archive.updated_at),
        created_by_id=to_public("user", archive.created_by_id),
        last_updated_by_id=to_public("user", archive.last_updated_by_id),
        passage_count=archive.passage_count,
    )
