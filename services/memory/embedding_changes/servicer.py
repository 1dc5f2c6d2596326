"""The part of loci.memory.v1.ArchiveService that changes embedding models."""

from typing import Any

from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import archive_service_pb2_grpc as archive_grpc
from services.common.context import CallContext, current
from services.common.core.storable import storable
from services.common.ids import from_public
from services.common.timestamps import timestamp
from services.memory.embedding_changes.model import Progress
from services.memory.embedding_changes.service import ArchiveRef, EmbeddingChangeService


class EmbeddingChangeServicer(archive_grpc.ArchiveServiceServicer):
    """Four methods of loci.memory.v1.ArchiveService."""

    def __init__(self, changes: EmbeddingChangeService) -> None:
        self._changes = changes

    async def ChangeEmbedding(
        self, request: archive_pb.ChangeEmbeddingRequest, context: Any
    ) -> archive_pb.ChangeEmbeddingResponse:
        embedding = storable(request.embedding).strip() or None
        progress = await self._changes.change(archive_ref(current(), request.archive_id), embedding)
        return archive_pb.ChangeEmbeddingResponse(change=change_message(progress, request.archive_id))

    async def GetEmbeddingChange(
        self, request: archive_pb.GetEmbeddingChangeRequest, context: Any
    ) -> archive_pb.GetEmbeddingChangeResponse:
        progress = await self._changes.progress(archive_ref(current(), request.archive_id))
        return archive_pb.GetEmbeddingChangeResponse(change=change_message(progress, request.archive_id))

    async def RollBackEmbeddingChange(
        self, request: archive_pb.RollBackEmbeddingChangeRequest, context: Any
    ) -> archive_pb.RollBackEmbeddingChangeResponse:
        progress = await self._changes.roll_back(archive_ref(current(), request.archive_id))
        return archive_pb.RollBackEmbeddingChangeResponse(change=change_message(progress, request.archive_id))

    async def FinishEmbeddingChange(
        self, request: archive_pb.FinishEmbeddingChangeRequest, context: Any
    ) -> archive_pb.FinishEmbeddingChangeResponse:
        progress = await self._changes.finish(archive_ref(current(), request.archive_id))
        return archive_pb.FinishEmbeddingChangeResponse(change=change_message(progress, request.archive_id))


def archive_ref(caller: CallContext, archive_id: str) -> ArchiveRef:
    """Returns that of `archive-<uuid>`, or `source-<uuid>` for a folder. Raises InvalidArgument (INVALID_ID)."""
    folder = archive_id.startswith("source-")
    id_ = from_public("source" if folder else "archive", archive_id)
    return ArchiveRef(caller.organization_id, caller.user_id, id_, folder)


def change_message(progress: Progress, archive_id: str) -> archive_pb.EmbeddingChange:
    """Returns a change on the wire."""
    change = progress.change
    return archive_pb.EmbeddingChange(
        archive_id=archive_id,
        from_embedding=change.before.embedding or "",
        to_embedding=change.after.embedding or "",
        state=archive_pb.EmbeddingChangeState.ValueType(change.state),
        embedded=progress.embedded,
        total=progress.total,
        last_error=change.error,
        created_at=timestamp(progress.created_at),
        updated_at=timestamp(progress.updated_at),
        completed_at=None if progress.completed_at is None else timestamp(progress.completed_at),
        rolling_back=change.rolling_back,
    )
