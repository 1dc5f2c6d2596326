"""Archives, passages, and what is searched for among them."""

from typing import Annotated, Any, Literal

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import AliasChoices, Field

from gateway.resources.agents.requests import Handle
from gateway.rest.body import Body, Json, deprecated, dump, sent_fields
from gateway.rest.params import AgentInBody, ArchiveInBody, Moment, PassageInBody
from gateway.rest.request_model import RequestModel
from loci.memory.v1 import archive_service_pb2, passage_pb2, passage_service_pb2
from services.common.core.neighbours import MOST_CONTEXT
from services.common.fields import When
from services.common.ids import to_public, uuid7
from services.common.timestamps import timestamp

TagMode = Literal["any", "all"]
Mode = Literal["hybrid", "vector", "text"]
MODES = {
    "hybrid": passage_pb2.SEARCH_MODE_HYBRID,
    "vector": passage_pb2.SEARCH_MODE_VECTOR,
    "text": passage_pb2.SEARCH_MODE_TEXT,
    None: passage_pb2.SEARCH_MODE_UNSPECIFIED,
}
_MOST_PASSAGES = 1_000


class EmbeddingConfig(Body):
    """The deprecated description of an embedding model, of which only its handle counts."""

    handle: Handle | None = None
    embedding_endpoint_type: str | None = None
    embedding_model: str | None = None

    def named(self) -> str:
        """Returns the handle; made of provider and model where it is not given."""
        if self.handle is None and self.embedding_endpoint_type and self.embedding_model:
            return f"{self.embedding_endpoint_type}/{self.embedding_model}"
        return self.handle or ""


class CreateArchive(RequestModel, of=passage_pb2.Archive, when=When.CREATION, leave=("dimensions",)):
    """Body of archives.create. Without an embedding model its passages are found by their words."""

    embedding: Handle | None = None
    embedding_config: EmbeddingConfig | None = deprecated()


class UpdateArchive(RequestModel, of=passage_pb2.Archive, when=When.CHANGE):
    """Body of archives.update: only what is sent changes. The embedding model can only be the one that is there."""

    embedding: Handle | None = None
    embedding_config: EmbeddingConfig | None = deprecated()


class PassageSettings(Body):
    """The fields that creation and change share."""

    tags: list[str] | None = None
    metadata: Json | None = None
    created_at: Moment | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None


class CreatePassage(PassageSettings):
    """Body of agents.passages.create and archives.passages.create. Loci's own: what it supersedes, and since when."""

    text: str
    key: str | None = None
    supersedes: list[PassageInBody] | None = None


class CreatePassages(Body):
    """Body of archives.passages.create_many."""

    passages: Annotated[list[CreatePassage], Field(max_length=_MOST_PASSAGES)]


class UpdatePassage(PassageSettings):
    """Only what is sent changes."""

    text: str | None = None


class SearchPassages(Body):
    """Body of passages.search. Without a query, the newest passages. Loci's own are the last three fields."""

    query: str | None = None
    agent_id: AgentInBody = None
    archive_id: ArchiveInBody = None
    tags: list[str] | None = None
    tag_match_mode: TagMode = "any"
    limit: Annotated[int, Field(ge=1)] = 5
    start_date: Moment | None = None
    end_date: Moment | None = None
    search_mode: Annotated[Mode | None, Field(validation_alias=AliasChoices("search_mode", "mode"))] = None
    context: Annotated[int, Field(ge=0, le=MOST_CONTEXT)] = 0
    as_of: Moment | None = None
    history: bool = False


def archive_request(body: CreateArchive) -> archive_service_pb2.CreateArchiveRequest:
    """Returns the request of CreateArchive, with an id, so that it may be repeated."""
    archive = body.message(id=to_public("archive", uuid7()))
    archive.embedding = embedding_of(body)
    return archive_service_pb2.CreateArchiveRequest(archive=archive)


def embedding_of(body: CreateArchive | UpdateArchive) -> str:
    """Returns the handle of the embedding model that the body names; empty where it names none."""
    return body.embedding or (body.embedding_config.named() if body.embedding_config else "")


def archive_change(archive_id: str, body: UpdateArchive) -> archive_service_pb2.UpdateArchiveRequest | None:
    """Returns the request of UpdateArchive; None when nothing changes."""
    mask = body.mask(leave={"embedding"})
    if not mask.paths:
        return None
    return archive_service_pb2.UpdateArchiveRequest(archive_id=archive_id, archive=body.message(), update_mask=mask)


def passage_draft(body: CreatePassage) -> passage_service_pb2.PassageDraft:
    """Returns the draft of a passage, with an id, so that storing it may be repeated."""
    return passage_service_pb2.PassageDraft(
        id=to_public("passage", uuid7()), **_fields(body, "text", "tags", "key", "supersedes")
    )


def passage_change(
    passage_id: str, body: UpdatePassage, *, agent_id: str = "", archive_id: str = ""
) -> passage_service_pb2.UpdatePassageRequest:
    """Returns the request of UpdatePassage; its mask is empty when nothing changes."""
    fields = _fields(body, "text", "tags")
    return passage_service_pb2.UpdatePassageRequest(
        agent_id=agent_id,
        archive_id=archive_id,
        passage_id=passage_id,
        passage=passage_service_pb2.PassageDraft(**fields),
        update_mask=FieldMask(paths=list(fields)),
    )


def _fields(body: Body, *plain: str) -> dict[str, Any]:
    """Returns the fields that were sent, as protobuf has them."""
    sent = sent_fields(body)
    fields: dict[str, Any] = {name: sent[name] for name in plain if name in sent}
    if "metadata" in sent:
        fields["metadata_json"] = dump(sent["metadata"])
    if "created_at" in sent:
        fields["created_at"] = timestamp(sent["created_at"])
    # Loci's own: a null means that it is true since it was made, or still.
    for name in ("valid_from", "valid_to"):
        if name in body.model_fields_set:
            fields[name] = timestamp(getattr(body, name))
    return fields
