"""Changes of an embedding model: protobuf to plain values and back."""

from loci.memory.v1 import archive_service_pb2 as archive_pb
from services.common.context import CallContext
from services.common.ids import from_public
from services.common.timestamps import timestamp
from services.memory.embedding_changes.model import Progress
from services.memory.embedding_changes.service import Whose


def whose(caller: CallContext, archive_id: str) -> Whose:
    """Of `archive-<uuid>`, or `source-<uuid>` for a folder. Raises InvalidArgument (INVALID_ID)."""
    folder = archive_id.startswith("source-")
    id_ = from_public("source" if folder else "archive", archive_id)
    return Whose(caller.organization_id, caller.user_id, id_, folder)


def change_message(progress: Progress, archive_id: str) -> archive_pb.EmbeddingChange:
    """A change on the wire."""
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
