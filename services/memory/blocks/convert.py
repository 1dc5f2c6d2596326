"""Blocks: protobuf to plain values and back."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as block_service_pb
from services.common.codec import Codec
from services.common.core.storable import storable_name
from services.common.errors import InvalidArgument
from services.common.ids import uuid7
from services.memory import wire
from services.memory.blocks.model import (
    DEFAULT_LIMIT,
    Block,
    BlockById,
    BlockByLabel,
    BlockDraft,
    BlockKey,
    BlockList,
    BlockSettings,
    BlockVersion,
)
from services.memory.blocks.service import VersionKey

# An unset limit is the default, not 0.
_DRAFTS = wire.settings(BlockDraft, block_pb2.Block, "BLOCK_INVALID", leave=("id", "limit"))
_SETTINGS = wire.settings(BlockSettings, block_pb2.Block, "BLOCK_INVALID")
_VERSIONS = Codec(BlockVersion, block_pb2.BlockVersion, leave=("operation", "redo_version"))
_block_lists = Codec(BlockList, block_service_pb.ListBlocksRequest)
block_message = Codec(Block, block_pb2.Block).encode


def block_list(request: block_service_pb.ListBlocksRequest) -> BlockList:
    """Returns which blocks to list, labels and tags as they are stored. Raises InvalidArgument."""
    wanted: BlockList = _block_lists.decode(request)
    return replace(
        wanted,
        label=wanted.label and storable_name(wanted.label),
        label_search=wanted.label_search and storable_name(wanted.label_search),
        tags=tuple(map(storable_name, wanted.tags)),
    )


def block_key(key: block_service_pb.BlockKey) -> BlockKey:
    """Raises InvalidArgument (BLOCK_INVALID) for a key that names nothing."""
    match key.WhichOneof("key"):
        case "block_id":
            return BlockById(wire.block_id(key.block_id))
        case "agent_label":
            label = storable_name(key.agent_label.label)
            return BlockByLabel(wire.agent_id(key.agent_label.agent_id), label)
        case _:
            raise InvalidArgument("the key names no block: set block_id or agent_label", reason="BLOCK_INVALID")


def block_draft(block: block_pb2.Block, *, id_needed: bool = False) -> BlockDraft:
    """Returns a block to create. Raises InvalidArgument (INVALID_ID), Refused."""
    block_id = wire.block_id(block.id) if block.id or id_needed else uuid7()
    return _DRAFTS.decode(block, id=block_id, limit=block.limit or DEFAULT_LIMIT)


def block_changes(block: block_pb2.Block, mask: Sequence[str]) -> dict[str, Any]:
    """Returns new values of the fields in `mask`; unset ones get their default. Raises InvalidArgument, Refused."""
    changes = wire.changes(_SETTINGS, block, mask)
    return changes | {"limit": block.limit or DEFAULT_LIMIT} if "limit" in changes else changes


def version_key(request: block_service_pb.GetBlockVersionRequest | block_service_pb.RestoreBlockRequest) -> VersionKey:
    """Returns a version's number or a time. Raises InvalidArgument (BLOCK_INVALID, TIME_INVALID)."""
    match request.WhichOneof("which"):
        case "version":
            return request.version
        case "as_of":
            time = wire.moment(request, "as_of")
            assert time is not None
            return time
        case _:
            raise InvalidArgument("which version is meant? set version or as_of", reason="BLOCK_INVALID")


def expected_version(
    request: block_service_pb.UpdateBlockRequest
    | block_service_pb.RestoreBlockRequest
    | block_service_pb.UndoBlockRequest
    | block_service_pb.RedoBlockRequest,
) -> int | None:
    """Returns the version that the caller has seen, if it says so."""
    return request.expected_version if request.HasField("expected_version") else None


def version_message(version: BlockVersion) -> block_pb2.BlockVersion:
    """Returns a row of history on the wire."""
    return _VERSIONS.encode(version, operation=block_pb2.BlockOperation.ValueType(version.operation))
