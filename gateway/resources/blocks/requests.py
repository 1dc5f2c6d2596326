"""Creating and changing blocks."""

from datetime import datetime
from typing import Annotated, Self

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import Field, model_validator

from gateway.rest.body import Body, Json, dump, given
from loci.memory.v1 import block_pb2, block_service_pb2
from services.common.ids import to_public, uuid7

Limit = Annotated[int, Field(ge=1, le=2**63 - 1)]
_PLAIN = (
    "label",
    "value",
    "limit",
    "description",
    "read_only",
    "hidden",
    "tags",
    "project_id",
    "template_name",
    "is_template",
    "template_id",
    "base_template_id",
    "deployment_id",
    "entity_id",
    "preserve_on_migration",
)


class BlockSettings(Body):
    """What creation and change have in common."""

    limit: Limit | None = None
    description: str | None = None
    read_only: bool | None = None
    hidden: bool | None = None
    metadata: Json | None = None
    tags: list[str] | None = None
    project_id: str | None = None
    template_name: str | None = None
    is_template: bool | None = None
    template_id: str | None = None
    base_template_id: str | None = None
    deployment_id: str | None = None
    entity_id: str | None = None
    preserve_on_migration: bool | None = None


class BlockBody(BlockSettings):
    """Body of blocks.create, and an entry of an agent's memory_blocks."""

    label: str
    value: str


class UpdateBlock(BlockSettings):
    """Body of blocks.update: only what is sent changes."""

    label: str | None = None
    value: str | None = None


def draft_of(body: BlockSettings, *, minted: bool = False) -> block_pb2.Block:
    """Returns the fields that were sent; `minted`: with an id, so that creating it may be repeated."""
    sent = given(body)
    fields: Json = {name: sent[name] for name in _PLAIN if name in sent}
    if "metadata" in sent:
        fields["metadata_json"] = dump(sent["metadata"])
    if minted:
        fields["id"] = to_public("block", uuid7())
    return block_pb2.Block(**fields)


def update_request(key: block_service_pb2.BlockKey, body: UpdateBlock) -> block_service_pb2.UpdateBlockRequest | None:
    """Returns the request of UpdateBlock; None when nothing changes."""
    sent = given(body)
    paths = [name for name in _PLAIN if name in sent]
    if "metadata" in sent:
        paths.append("metadata_json")
    if not paths:
        return None
    mask = FieldMask(paths=paths)
    return block_service_pb2.UpdateBlockRequest(key=key, block=draft_of(body), update_mask=mask)


Version = Annotated[int, Field(ge=1, le=2**63 - 1)]


class Journey(Body):
    """Body of undo and redo. expected_version: the version that the client has seen; another one is left alone."""

    expected_version: Version | None = None


class Restore(Journey):
    """Body of restore: a version by its number, or the one that stood at a time (in UTC unless it has an offset)."""

    version: Version | None = None
    as_of: datetime | None = None

    @model_validator(mode="after")
    def _one_is_given(self) -> Self:
        if (self.version is None) == (self.as_of is None):
            raise ValueError("give either `version` or `as_of`")
        return self
