"""The part of loci.memory.v1.ArchiveService that changes embedding models."""

from typing import Any

from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import archive_service_pb2_grpc as archive_grpc
from services.common.context import current
from services.memory.core.storable import without_nul
from services.memory.embedding_changes.convert import change_message, whose
from services.memory.embedding_changes.service import EmbeddingChanges


class EmbeddingChangeServicer(archive_grpc.ArchiveServiceServicer):
    """Four methods of loci.memory.v1.ArchiveService."""

    def __init__(self, changes: EmbeddingChanges) -> None:
        self._changes = changes

    async def ChangeEmbedding(
        self, request: archive_pb.ChangeEmbeddingRequest, context: Any
    ) -> archive_pb.ChangeEmbeddingResponse:
        embedding = without_nul(request.embedding).strip() or None
        progress = await self._changes.change(whose(current(), request.archive_id), embedding)
        return archive_pb.ChangeEmbeddingResponse(change=change_message(progress, request.archive_id))

    async def GetEmbeddingChange(
        self, request: archive_pb.GetEmbeddingChangeRequest, context: Any
    ) -> archive_pb.GetEmbeddingChangeResponse:
        progress = await self._changes.progress(whose(current(), request.archive_id))
        return archive_pb.GetEmbeddingChangeResponse(change=change_message(progress, request.archive_id))

    async def RollBackEmbeddingChange(
        self, request: archive_pb.RollBackEmbeddingChangeRequest, context: Any
    ) -> archive_pb.RollBackEmbeddingChangeResponse:
        progress = await self._changes.roll_back(whose(current(), request.archive_id))
        return archive_pb.RollBackEmbeddingChangeResponse(change=change_message(progress, request.archive_id))

    async def FinishEmbeddingChange(
        self, request: archive_pb.FinishEmbeddingChangeRequest, context: Any
    ) -> archive_pb.FinishEmbeddingChangeResponse:
        progress = await self._changes.finish(whose(current(), request.archive_id))
        return archive_pb.FinishEmbeddingChangeResponse(change=change_message(progress, request.archive_id))
