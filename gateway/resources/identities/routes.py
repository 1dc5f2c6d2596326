"""Identities: whom agents serve and blocks are about. Deprecated in the reference; it works all the same."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, WHOLE, array
from gateway.resources.agents.relations import Include, relations_of
from gateway.resources.agents.routes import states
from gateway.resources.agents.schemas import AGENT
from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.blocks.schemas import BLOCK
from gateway.resources.identities import requests as bodies
from gateway.resources.identities.schemas import IDENTITY
from gateway.rest.convert import to_rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentId, BlockId, IdentityId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import agent_service_pb2, identity_pb2
from loci.agent.v1 import identity_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_service_pb2

router = APIRouter(tags=["identities"])
_OLD = APIRouter(prefix="/identities")


@_OLD.get("")
@returns(array(IDENTITY))
@paged(50)
async def list_identities(
    loci: Loci,
    name: str | None = None,
    project_id: str | None = None,
    identifier_key: str | None = None,
    identity_type: bodies.IdentityType | None = None,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
) -> Response:
    """A page of identities, newest first. Deprecated in the reference."""
    response = await loci.peers.call(
        loci.peers.identities.ListIdentities,
        wire.ListIdentitiesRequest(
            page=page,
            name=name,
            identity_type=identity_type,
            identifier_keys=[] if identifier_key is None else [identifier_key],
            project_id=project_id,
        ),
    )
    return json_response([to_rest(each) for each in response.identities])


@_OLD.get("/count")
@returns(WHOLE)
async def count_identities(loci: Loci) -> Response:
    """How many there are. Deprecated in the reference."""
    counted = await loci.peers.call(loci.peers.identities.CountIdentities, wire.CountIdentitiesRequest())
    return json_response(counted.identities)


@_OLD.get("/{identity_id}")
@returns(IDENTITY)
async def retrieve_identity(identity_id: IdentityId, loci: Loci) -> Response:
    """One identity. Deprecated in the reference."""
    return json_response(to_rest(await fetch_identity(loci, identity_id)))


@_OLD.post("")
@returns(IDENTITY)
async def create_identity(body: bodies.CreateIdentity, loci: Loci) -> Response:
    """Creates an identity; its key is its own within the project (409). Deprecated in the reference."""
    created = await loci.peers.call(loci.peers.identities.CreateIdentity, bodies.create_request(body))
    return json_response(to_rest(created.identity))


@_OLD.put("")
@returns(IDENTITY)
async def upsert_identity(body: bodies.CreateIdentity, loci: Loci) -> Response:
    """Changes the identity that has the key in the project, or creates it. Deprecated in the reference."""
    stored = await loci.peers.call(loci.peers.identities.UpsertIdentity, bodies.upsert_request(body))
    return json_response(to_rest(stored.identity))


@_OLD.patch("/{identity_id}")
@returns(IDENTITY)
async def update_identity(identity_id: IdentityId, body: bodies.UpdateIdentity, loci: Loci) -> Response:
    """Changes what the body names. Deprecated in the reference."""
    request = bodies.update_request(identity_id, body)
    if request is None:
        return await retrieve_identity(identity_id, loci)
    return json_response(to_rest((await loci.peers.call(loci.peers.identities.UpdateIdentity, request)).identity))


@_OLD.put("/{identity_id}/properties")
@returns(NULL)
async def upsert_properties(identity_id: IdentityId, body: list[bodies.IdentityProperty], loci: Loci) -> Response:
    """Sets properties by their keys; the others stay. Deprecated in the reference."""
    request = bodies.properties_request(identity_id, body)
    await loci.peers.call(loci.peers.identities.UpsertIdentityProperties, request)
    return json_response(None)


@_OLD.delete("/{identity_id}")
@returns(NULL)
async def delete_identity(identity_id: IdentityId, loci: Loci) -> Response:
    """Deletes an identity; its agents and blocks stay. Deprecated in the reference."""
    await loci.peers.call(loci.peers.identities.DeleteIdentity, wire.DeleteIdentityRequest(identity_id=identity_id))
    return json_response(None)


@_OLD.get("/{identity_id}/agents")
@returns(array(AGENT))
@paged(50)
async def list_agents(
    request: Request,
    identity_id: IdentityId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    include: Include = None,
) -> Response:
    """A page of the agents that serve it, newest first. Deprecated in the reference."""
    filters = agent_service_pb2.ListAgentsRequest(
        identity_id=identity_id,
        page=page,
        show_hidden=True,
    )
    response, _ = await asyncio.gather(
        loci.peers.call(loci.peers.agents.ListAgents, filters), fetch_identity(loci, identity_id)
    )
    return json_response(await states(loci, response.agents, relations_of(request, include)))


@_OLD.get("/{identity_id}/blocks")
@returns(array(BLOCK))
@paged(50)
async def list_blocks(
    identity_id: IdentityId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
) -> Response:
    """A page of the blocks about it, newest first. Deprecated in the reference."""
    request = block_service_pb2.ListBlocksRequest(
        identity_id=identity_id,
        page=page,
        show_hidden=True,
    )
    response, _ = await asyncio.gather(
        loci.peers.call(loci.peers.blocks.ListBlocks, request), fetch_identity(loci, identity_id)
    )
    return json_response([block_to_rest(block) for block in response.blocks])


@router.patch("/agents/{agent_id}/identities/attach/{identity_id}")
@returns(NULL)
async def attach_to_agent(agent_id: AgentId, identity_id: IdentityId, loci: Loci) -> Response:
    """The agent serves one more."""
    request = wire.AttachIdentityRequest(agent_id=agent_id, identity_id=identity_id)
    await loci.peers.call(loci.peers.identities.AttachIdentity, request)
    return json_response(None)


@router.patch("/agents/{agent_id}/identities/detach/{identity_id}")
@returns(NULL)
async def detach_from_agent(agent_id: AgentId, identity_id: IdentityId, loci: Loci) -> Response:
    """The agent serves one less."""
    request = wire.DetachIdentityRequest(agent_id=agent_id, identity_id=identity_id)
    await loci.peers.call(loci.peers.identities.DetachIdentity, request)
    return json_response(None)


@router.patch("/blocks/{block_id}/identities/attach/{identity_id}")
@returns(BLOCK)
async def attach_to_block(block_id: BlockId, identity_id: IdentityId, loci: Loci) -> Response:
    """The block is about one more; returns the block."""
    # The memory service does not know which there are.
    await fetch_identity(loci, identity_id)
    request = block_service_pb2.AttachIdentityRequest(block_id=block_id, identity_id=identity_id)
    await loci.peers.call(loci.peers.blocks.AttachIdentity, request)
    return await _block(loci, block_id)


@router.patch("/blocks/{block_id}/identities/detach/{identity_id}")
@returns(BLOCK)
async def detach_from_block(block_id: BlockId, identity_id: IdentityId, loci: Loci) -> Response:
    """The block is about one less; returns the block."""
    await fetch_identity(loci, identity_id)
    request = block_service_pb2.DetachIdentityRequest(block_id=block_id, identity_id=identity_id)
    await loci.peers.call(loci.peers.blocks.DetachIdentity, request)
    return await _block(loci, block_id)


async def _block(loci: Services, block_id: str) -> Response:
    request = block_service_pb2.GetBlockRequest(key=block_service_pb2.BlockKey(block_id=block_id))
    return json_response(block_to_rest((await loci.peers.call(loci.peers.blocks.GetBlock, request)).block))


async def fetch_identity(loci: Services, identity_id: str) -> identity_pb2.Identity:
    """Returns the identity. Raises NotFound."""
    request = wire.GetIdentityRequest(identity_id=identity_id)
    return (await loci.peers.call(loci.peers.identities.GetIdentity, request)).identity


router.include_router(_OLD, deprecated=True)
