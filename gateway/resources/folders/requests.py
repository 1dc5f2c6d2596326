"""Creating and changing folders."""

from google.protobuf.field_mask_pb2 import FieldMask

from gateway.resources.archives.requests import EmbeddingConfig
from gateway.rest.body import Body, Json, deprecated, dump, given
from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.ids import to_public, uuid7

_PLAIN = ("name", "description", "instructions")


class FolderSettings(Body):
    """The fields that creation and change share."""

    description: str | None = None
    instructions: str | None = None
    metadata: Json | None = None
    # In a change it can only be the one that is there: see archives/embedding_changes.py.
    embedding_config: EmbeddingConfig | None = deprecated()


class CreateFolder(FolderSettings):
    """Body of folders.create. `embedding`: a handle; empty for text search only; not given, the server's."""

    name: str
    embedding: str | None = None
    # Files are cut where their contents say.
    embedding_chunk_size: int | None = deprecated()


class UpdateFolder(FolderSettings):
    """Body of folders.update: only what is sent changes."""

    name: str | None = None


def create_request(body: CreateFolder, default_embedding: str) -> folder_service_pb2.CreateFolderRequest:
    """With an id, so that creating it may be repeated."""
    fields = _fields(body)
    embedding = body.embedding
    if embedding is None:
        embedding = default_embedding if body.embedding_config is None else body.embedding_config.named()
    fields |= {"id": to_public("source", uuid7()), "embedding": embedding}
    return folder_service_pb2.CreateFolderRequest(folder=folder_pb2.Folder(**fields))


def update_request(folder_id: str, body: UpdateFolder) -> folder_service_pb2.UpdateFolderRequest | None:
    """Returns the request of UpdateFolder; None when nothing changes."""
    fields = _fields(body)
    if not fields:
        return None
    return folder_service_pb2.UpdateFolderRequest(
        folder_id=folder_id,
        folder=folder_pb2.Folder(**fields),
        update_mask=FieldMask(paths=list(fields)),
    )


def _fields(body: FolderSettings) -> Json:
    sent = given(body)
    fields: Json = {name: sent[name] for name in _PLAIN if name in sent}
    if "metadata" in sent:
        fields["metadata_json"] = dump(sent["metadata"])
    return fields
