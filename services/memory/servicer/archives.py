"""loci.memory.v1.ArchiveService."""

from services.memory.servicer.embedding_changes import EmbeddingChangeServicer


class ArchiveServicer(EmbeddingChangeServicer):
    """loci.memory.v1.ArchiveService."""
