"""The history of blocks: routes of Loci's own, which the reference lacks.

Every change of a block makes a version, and keeps who made it: the user, and for a tool call the agent, run, step and
call. Nothing is erased by going back: restoring, undoing and redoing make versions, too.
"""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Query
from google.protobuf.timestamp_pb2 import Timestamp
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.blocks.requests import Journey, Restore
from gateway.resources.blocks.responses import block_version_to_rest
from gateway.resources.blocks.routes import block_key, tagged
from gateway.resources.blocks.schemas import BLOCK_DIFF, BLOCK_NOW, BLOCK_VERSION
from gateway.rest import convert
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import BlockId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_pb2
from loci.memory.v1 import block_service_pb2 as wire
from services.common.timestamps import timestamp

router = APIRouter(prefix="/blocks/{block_id}", tags=["block history"])

Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
Cursor = Annotated[
    int | None, Query(ge=0, le=2**63 - 1, description="A version; the page begins after, or ends before.")
]


@router.get("/versions")
@returns(array(BLOCK_VERSION))
@paged(50, cursor=Cursor)
async def list_versions(
    block_id: BlockId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """A page of the block's versions, the newest first."""
    request = wire.ListBlockVersionsRequest(block_id=block_id, page=page)
    response = await loci.peers.call(loci.peers.blocks.ListBlockVersions, request)
    return json_response([block_version_to_rest(version) for version in response.versions])


@router.get("/versions/{version}")
@returns(BLOCK_VERSION)
async def retrieve_version(block_id: BlockId, version: Number, loci: Loci) -> Response:
    """One version."""
    return await _version(loci, wire.GetBlockVersionRequest(key=block_key(block_id), version=version))


@router.get("/value")
@returns(BLOCK_VERSION)
async def retrieve_value(
    block_id: BlockId,
    loci: Loci,
    as_of: Annotated[datetime, Query(description="ISO 8601; in UTC unless it has an offset.")],
) -> Response:
    """The version that stood at a time, with its value."""
    return await _version(loci, wire.GetBlockVersionRequest(key=block_key(block_id), as_of=_timestamp(as_of)))


@router.get("/diff")
@returns(BLOCK_DIFF)
async def diff_versions(
    block_id: BlockId,
    loci: Loci,
    from_version: Annotated[int, Query(ge=1, le=2**63 - 1)],
    to_version: Annotated[int | None, Query(ge=1, le=2**63 - 1, description="Default: the newest.")] = None,
) -> Response:
    """Returns the change of the value between two versions: a unified diff, and the lines added and removed."""
    request = wire.DiffBlockVersionsRequest(
        key=block_key(block_id), from_version=from_version, to_version=to_version or 0
    )
    response = await loci.peers.call(loci.peers.blocks.DiffBlockVersions, request)
    return json_response(convert.to_rest(response))


@router.post("/restore")
@returns(BLOCK_NOW)
async def restore_version(block_id: BlockId, body: Restore, loci: Loci) -> Response:
    """Brings the value of an earlier version back, for every agent that has the block."""
    request = wire.RestoreBlockRequest(key=block_key(block_id), expected_version=body.expected_version)
    if body.version is not None:
        request.version = body.version
    if body.as_of is not None:
        request.as_of.CopyFrom(_timestamp(body.as_of))
    return _changed((await loci.peers.call(loci.peers.blocks.RestoreBlock, request)).block)


@router.post("/undo")
@returns(BLOCK_NOW)
async def undo_change(block_id: BlockId, loci: Loci, body: Journey | None = None) -> Response:
    """Takes the newest change of the value back that was not taken back yet; 409 at the first value."""
    expected = None if body is None else body.expected_version
    request = wire.UndoBlockRequest(key=block_key(block_id), expected_version=expected)
    return _changed((await loci.peers.call(loci.peers.blocks.UndoBlock, request)).block)


@router.post("/redo")
@returns(BLOCK_NOW)
async def redo_change(block_id: BlockId, loci: Loci, body: Journey | None = None) -> Response:
    """Makes the change again that the newest undo took back; 409 where the value was changed since."""
    expected = None if body is None else body.expected_version
    request = wire.RedoBlockRequest(key=block_key(block_id), expected_version=expected)
    return _changed((await loci.peers.call(loci.peers.blocks.RedoBlock, request)).block)


async def _version(loci: Services, request: wire.GetBlockVersionRequest) -> Response:
    response = await loci.peers.call(loci.peers.blocks.GetBlockVersion, request)
    return json_response(block_version_to_rest(response.version))


def _changed(block: block_pb2.Block) -> Response:
    """Returns the block as it is now, and its version."""
    return tagged(block, version=block.version)


def _timestamp(time: datetime) -> Timestamp:
    try:
        return timestamp(time)
    except OverflowError:
        raise InvalidRequest("`as_of`: give a time between the years 1 and 9999", "as_of") from None
