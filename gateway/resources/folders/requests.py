"""Creating and changing folders."""

from gateway.resources.archives.requests import EmbeddingConfig
from gateway.rest.body import deprecated
from gateway.rest.request_model import RequestModel
from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.fields import When
from services.common.ids import to_public, uuid7


class CreateFolder(RequestModel, of=folder_pb2.Folder, when=When.CREATION):
    """Body of folders.create. `embedding`: a handle; empty for text search only; not given, the server's."""

    embedding: str | None = None
    embedding_config: EmbeddingConfig | None = deprecated()
    # Files are cut where their contents say.
    embedding_chunk_size: int | None = deprecated()


class UpdateFolder(RequestModel, of=folder_pb2.Folder, when=When.CHANGE):
    """Body of folders.update: only what is sent changes."""

    # It can only be the one that is there: see archives/embedding_changes.py.
    embedding_config: EmbeddingConfig | None = deprecated()


def create_request(body: CreateFolder, default_embedding: str) -> folder_service_pb2.CreateFolderRequest:
    """Returns the request of CreateFolder, with an id, so that it may be repeated."""
    folder = body.message(id=to_public("source", uuid7()))
    if body.embedding is None:
        folder.embedding = default_embedding if body.embedding_config is None else body.embedding_config.named()
    return folder_service_pb2.CreateFolderRequest(folder=folder)


def update_request(folder_id: str, body: UpdateFolder) -> folder_service_pb2.UpdateFolderRequest | None:
    """Returns the request of UpdateFolder; None when nothing changes."""
    mask = body.mask()
    if not mask.paths:
        return None
    return folder_service_pb2.UpdateFolderRequest(folder_id=folder_id, folder=body.message(), update_mask=mask)
