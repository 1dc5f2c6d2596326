"""Archives and passages as REST, with what is known of their embedding models."""

from collections.abc import Iterable, Mapping, Sequence

from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.resources.agents.responses import Models, embedding_config
from gateway.resources.archives.schemas import FACT_FIELDS
from gateway.rest.convert import Rest, to_rest
from gateway.rest.responses import json_response
from gateway.rest.services import Services
from loci.memory.v1 import archive_service_pb2, passage_pb2
from services.common.context import current
from services.common.ids import to_public

# A provider embeds the text meanwhile.
EMBEDDING_SECONDS = 120.0
# Of an answer by text alone: the embedding models that did not answer.
WITHOUT_VECTORS = "x-loci-without-vectors"


def archive_rest(archive: passage_pb2.Archive, models: Models) -> Rest:
    """Returns one archive. The length of its vectors is its own where nobody knows the model any more."""
    config = embedding_config(archive.embedding, models)
    if config is not None and not config["embedding_dim"]:
        config["embedding_dim"] = archive.dimensions
    return archive_to_rest(archive, config, to_public("org", current().organization_id))


async def passage_rests(loci: Services, passages: Iterable[passage_pb2.Passage]) -> Sequence[Rest]:
    """Returns the passages, in order."""
    models, stored = await loci.catalogue.models(), list(passages)
    organization_id = to_public("org", current().organization_id)
    configs = {handle: embedding_config(handle, models) for handle in {one.embedding for one in stored}}
    return [passage_to_rest(one, configs[one.embedding], organization_id) for one in stored]


async def passage_answer(loci: Services, passage: passage_pb2.Passage) -> Response:
    """Returns one passage."""
    return json_response((await passage_rests(loci, [passage]))[0])


async def passage_answers(loci: Services, passages: Iterable[passage_pb2.Passage]) -> Response:
    """Returns passages in a list."""
    return json_response(await passage_rests(loci, passages))


def without_vectors(handles: Sequence[str]) -> Mapping[str, str]:
    """Returns the header that says by which models was not searched; none where all answered."""
    return {WITHOUT_VECTORS: ", ".join(handles)} if handles else {}


def passage_to_rest(message: passage_pb2.Passage, embedding_config: Rest | None, organization_id: str) -> Rest:
    """Returns the reference's Passage: 16 fields, and of a fact that changes Loci's own.

    `embedding`, the vector, is never served.
    """
    rest = to_rest(message, leave=frozenset({"file"}))
    rest = {name: value for name, value in rest.items() if value is not None or name not in FACT_FIELDS}
    return rest | {
        "tags": rest["tags"] or None,
        "source_id": message.file.folder_id or None,
        "file_id": message.file.file_id or None,
        "file_name": message.file.file_name or None,
        "embedding": None,
        "embedding_config": embedding_config,
        "organization_id": organization_id,
        "is_deleted": False,
    }


def archive_to_rest(message: passage_pb2.Archive, embedding_config: Rest | None, organization_id: str) -> Rest:
    """Returns the reference's Archive: 11 fields."""
    rest = to_rest(message, leave=frozenset({"embedding", "dimensions", "passage_count"}))
    return rest | {
        "embedding_config": embedding_config,
        "metadata": rest["metadata"] or None,
        "vector_db_provider": "native",
        "organization_id": organization_id,
    }


_NULL_IF_EMPTY = ("from_embedding", "to_embedding", "last_error")


def change_rest(change: archive_service_pb2.EmbeddingChange) -> Rest:
    """Returns one change; handles are null where there are no vectors."""
    rest = to_rest(change)
    return rest | {name: rest[name] or None for name in _NULL_IF_EMPTY}


def refuse_other_embedding(embedding: str | None, current: str, path: str, field: str = "embedding") -> None:
    """Raises InvalidRequest when an update asks for another model than the one that is there.

    embedding: the handle in the body, None or empty where it has none. path: of the archive or folder, below /v1.
    """
    if embedding and embedding != current:
        sentence = f"is changed by POST /v1{path}/embedding-change, which makes the vectors anew in the background"
        raise InvalidRequest(f"`{field}`: the embedding model {sentence}", "body", field)
