"""Blocks as REST."""

from gateway.rest.convert import Rest, to_rest
from loci.memory.v1 import block_pb2

_NOT_IN_BLOCKS = frozenset({"created_at", "updated_at", "version"})


def block_to_rest(message: block_pb2.Block) -> Rest:
    """Returns the reference's Block: 19 fields. It never says who made or changed one; versions do."""
    return to_rest(message, leave=_NOT_IN_BLOCKS) | {"created_by_id": None, "last_updated_by_id": None}


def block_version_to_rest(message: block_pb2.BlockVersion) -> Rest:
    """Returns a version of a block: Loci's own."""
    nulls = {"call_key": message.call_key or None, "restored_version": message.restored_version or None}
    return to_rest(message) | nulls
