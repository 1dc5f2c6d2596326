"""Blocks on their own."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, WHOLE, array
from gateway.resources.agents.relations import Include, relations_of
from gateway.resources.agents.routes import attached_page
from gateway.resources.agents.schemas import AGENT
from gateway.resources.blocks import requests as bodies
from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.blocks.schemas import BLOCK
from gateway.rest.body import Int32
from gateway.rest.paging import FIRST_PAGE, MOST_PER_PAGE, paged
from gateway.rest.params import BlockId, IdentityFilter, Names
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import identity_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_pb2, block_service_pb2

IfMatch = Annotated[str | None, Header(description='A version, as ETag gives it: "7".')]

router = APIRouter(prefix="/blocks", tags=["blocks"])

_ETAG = re.compile(r'^\s*(?:W/)?"?(\d{1,18})"?\s*$')


@router.post("")
@returns(BLOCK)
async def create_block(body: bodies.BlockBody, loci: Loci) -> Response:
    """Creates a block that is attached to nobody."""
    request = block_service_pb2.CreateBlockRequest(block=body.block())
    created = await loci.peers.call(loci.peers.blocks.CreateBlock, request)
    return json_response(block_to_rest(created.block))


@router.get("")
@returns(array(BLOCK))
@paged(50, "asc", names="limit before after order", zero="all")
async def list_blocks(
    loci: Loci,
    label: str | None = None,
    templates_only: bool = False,
    name: str | None = None,
    identity_id: IdentityFilter = None,
    identifier_keys: Names = None,
    project_id: str | None = None,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    label_search: str | None = None,
    description_search: str | None = None,
    value_search: str | None = None,
    connected_to_agents_count_gt: Int32 | None = None,
    connected_to_agents_count_lt: Int32 | None = None,
    connected_to_agents_count_eq: Annotated[list[Int32] | None, Query()] = None,
    tags: Names = None,
    match_all_tags: bool = False,
    show_hidden_blocks: bool = False,
) -> Response:
    """A page of blocks, oldest first."""
    identity_ids = [] if not identifier_keys else await _identities(loci, identifier_keys)
    if identifier_keys and not identity_ids:
        return json_response([])
    response = await loci.peers.call(
        loci.peers.blocks.ListBlocks,
        block_service_pb2.ListBlocksRequest(
            page=page,
            label=label,
            label_search=label_search,
            value_search=value_search,
            description_search=description_search,
            tags=tags,
            match_any_tag=not match_all_tags,
            show_hidden=show_hidden_blocks,
            is_template=True if templates_only else None,
            template_name=name,
            project_id=project_id,
            more_agents_than=connected_to_agents_count_gt,
            fewer_agents_than=connected_to_agents_count_lt,
            agent_counts=connected_to_agents_count_eq,
            identity_ids=identity_ids,
            identity_id=identity_id,
        ),
    )
    return json_response([block_to_rest(block) for block in response.blocks])


@router.get("/count")
@returns(WHOLE)
async def count_blocks(loci: Loci) -> Response:
    """How many blocks there are, hidden ones too."""
    counted = await loci.peers.call(loci.peers.blocks.CountBlocks, block_service_pb2.CountBlocksRequest())
    return json_response(counted.blocks)


@router.get("/{block_id}")
@returns(BLOCK)
async def retrieve_block(block_id: BlockId, loci: Loci) -> Response:
    """One block; its version is the answer's ETag."""
    request = block_service_pb2.GetBlockRequest(key=block_key(block_id))
    return tagged((await loci.peers.call(loci.peers.blocks.GetBlock, request)).block)


@router.patch("/{block_id}")
@returns(BLOCK)
async def update_block(block_id: BlockId, body: bodies.UpdateBlock, loci: Loci, if_match: IfMatch = None) -> Response:
    """Changes what the body names, for every agent that has the block.

    With the header If-Match, which takes a version as ETag gives it, only if the block is at that version (409).
    """
    expected = _version_in(if_match)
    request = bodies.update_request(block_key(block_id), body)
    if request is None:
        return await retrieve_block(block_id, loci)
    if expected is not None:
        request.expected_version = expected
    return tagged((await loci.peers.call(loci.peers.blocks.UpdateBlock, request)).block)


@router.delete("/{block_id}")
@returns(NULL)
async def delete_block(block_id: BlockId, loci: Loci) -> Response:
    """Deletes a block and detaches it everywhere."""
    request = block_service_pb2.DeleteBlockRequest(block_id=block_id)
    await loci.peers.call(loci.peers.blocks.DeleteBlock, request)
    return json_response(None)


@router.get("/{block_id}/agents")
@returns(array(AGENT))
@paged(100)
async def list_agents(
    request: Request,
    block_id: BlockId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    include: Include = None,
) -> Response:
    """The agents that the block is attached to, in the order of attachment, the newest first.

    A block that is not there has none.
    """
    attachments = block_service_pb2.ListBlockAgentsRequest(block_id=block_id)
    attached = await loci.peers.call(loci.peers.blocks.ListBlockAgents, attachments)
    return await attached_page(loci, attached.agent_ids, page, relations_of(request, include))


async def _identities(loci: Services, keys: Sequence[str]) -> list[str]:
    """Ids of the identities that have one of these keys, in whatever project."""
    request = identity_service_pb2.ListIdentitiesRequest(
        identifier_keys=keys, page=PageRequest(page_size=MOST_PER_PAGE)
    )
    response = await loci.peers.call(loci.peers.identities.ListIdentities, request)
    return [identity.id for identity in response.identities]


def block_key(block_id: str) -> block_service_pb2.BlockKey:
    """Returns names a block by its id."""
    return block_service_pb2.BlockKey(block_id=block_id)


def tagged(block: block_pb2.Block, **more: object) -> Response:
    """Returns a block, and its version as the ETag."""
    return json_response(block_to_rest(block) | more, headers={"etag": f'"{block.version}"'})


def _version_in(if_match: str | None) -> int | None:
    """Returns the version in an If-Match header. Raises InvalidRequest."""
    if if_match is None or if_match.strip() == "*":
        return None
    match = _ETAG.match(if_match)
    if match is None:
        raise InvalidRequest('`If-Match`: give a version as ETag does, such as "7"', "header", "if-match")
    return int(match[1])
