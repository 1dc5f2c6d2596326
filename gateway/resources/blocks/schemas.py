"""Blocks."""

from gateway.openapi.schemas import TEXT, WHOLE, maybe, of
from loci.memory.v1 import block_pb2, block_service_pb2

BLOCK_LEFT = ("created_at", "updated_at", "version")
BLOCK = of("Block", block_pb2.Block.DESCRIPTOR, leave=BLOCK_LEFT)
BLOCK_NOW = of("BlockNow", block_pb2.Block.DESCRIPTOR, leave=BLOCK_LEFT, version=WHOLE)
BLOCK_VERSION = of(
    "BlockVersion",
    block_pb2.BlockVersion.DESCRIPTOR,
    call_key=maybe(TEXT),
    restored_version=maybe(WHOLE),
)
BLOCK_DIFF = of("BlockDiff", block_service_pb2.DiffBlockVersionsResponse.DESCRIPTOR)
