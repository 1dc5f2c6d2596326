"""Changes of the embedding model of archives and folders: as REST, and how a client that wants one is led to it."""

from gateway.errors.table import InvalidRequest
from gateway.rest.convert import Rest, to_rest
from loci.memory.v1 import archive_service_pb2

_NULL_IF_EMPTY = ("from_embedding", "to_embedding", "last_error")


def change_rest(change: archive_service_pb2.EmbeddingChange) -> Rest:
    """One change; handles are null where there are no vectors."""
    rest = to_rest(change)
    return rest | {name: rest[name] or None for name in _NULL_IF_EMPTY}


def refuse_other_embedding(wanted: str | None, current: str, path: str, field: str = "embedding") -> None:
    """Raises InvalidRequest when an update asks for another model than the one that is there.

    wanted: the handle in the body, None or empty where it has none. path: of the archive or folder, below /v1.
    """
    if wanted and wanted != current:
        sentence = f"is changed by POST /v1{path}/embedding-change, which makes the vectors anew in the background"
        raise InvalidRequest(f"`{field}`: the embedding model {sentence}", "body", field)
