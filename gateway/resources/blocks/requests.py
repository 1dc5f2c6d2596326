"""Creating and changing blocks, and going through their history."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, model_validator

from gateway.rest.body import Body
from gateway.rest.request_model import RequestModel
from loci.memory.v1 import block_pb2, block_service_pb2
from services.common.fields import When
from services.common.ids import to_public, uuid7

Limit = Annotated[int, Field(ge=1, le=2**63 - 1)]


class BlockBody(RequestModel, of=block_pb2.Block, when=When.CREATION):
    """Body of blocks.create, and an entry of an agent's memory_blocks."""

    limit: Limit | None = None

    def block(self) -> block_pb2.Block:
        """Returns the block with an id, so that creating it may be repeated."""
        block: block_pb2.Block = self.message(id=to_public("block", uuid7()))
        return block


class UpdateBlock(RequestModel, of=block_pb2.Block, when=When.CHANGE):
    """Body of blocks.update: only what is sent changes."""

    limit: Limit | None = None


def update_request(key: block_service_pb2.BlockKey, body: UpdateBlock) -> block_service_pb2.UpdateBlockRequest | None:
    """Returns the request of UpdateBlock; None when nothing changes."""
    mask = body.mask()
    if not mask.paths:
        return None
    return block_service_pb2.UpdateBlockRequest(key=key, block=body.message(), update_mask=mask)


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
