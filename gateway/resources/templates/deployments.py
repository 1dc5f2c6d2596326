"""Parts of templates made one by one, and all that has one deployment id, listed and deleted."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.agents import routes as agents
from gateway.resources.agents.schemas import AGENT
from gateway.resources.blocks import routes as blocks
from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.blocks.schemas import BLOCK
from gateway.resources.groups import routes as groups
from gateway.resources.groups.schemas import GROUP
from gateway.resources.templates.requests import DeployedAgent, DeployedBlock, DeployedBlocks, DeployedGroup, EntityType
from gateway.resources.templates.schemas import DELETED, DEPLOYMENT
from gateway.rest import convert
from gateway.rest.convert import Rest
from gateway.rest.paging import MOST_PER_PAGE
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import agent_service_pb2, group_service_pb2
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.memory.v1 import block_pb2, block_service_pb2
from services.common.errors import LociError, NotFound

router = APIRouter(prefix="/_internal_templates", tags=["_internal_templates"])

_OLDEST_FIRST = PageRequest(order=ORDER_ASCENDING)


@router.post("/groups")
@returns(GROUP)
async def create_group(body: DeployedGroup, loci: Loci) -> Response:
    """Creates a group of a deployment."""
    return await groups.create_group(body, loci)


@router.post("/agents")
@returns(AGENT)
async def create_agent(body: DeployedAgent, loci: Loci) -> Response:
    """Creates an agent of a deployment."""
    return await agents.create_agent(body, loci)


@router.post("/blocks")
@returns(BLOCK)
async def create_block(body: DeployedBlock, loci: Loci) -> Response:
    """Creates a block of a deployment that is attached to nobody."""
    return await blocks.create_block(body, loci)


@router.post("/blocks/batch")
@returns(array(BLOCK))
async def create_blocks(body: DeployedBlocks, loci: Loci) -> Response:
    """Creates blocks of a deployment, all or none; answers them in order."""
    created: list[block_pb2.Block] = []
    try:
        for each in body:
            request = block_service_pb2.CreateBlockRequest(block=each.block())
            created.append((await loci.peers.call(loci.peers.blocks.CreateBlock, request)).block)
    except LociError:
        for block in created:
            await _delete_block(loci, block.id)
        raise
    return json_response([block_to_rest(block) for block in created])


@router.get("/deployment/{deployment_id}")
@returns(DEPLOYMENT)
async def list_deployment(
    deployment_id: str, loci: Loci, entity_types: Annotated[list[EntityType] | None, Query()] = None
) -> Response:
    """Returns all with the deployment id, hidden ones too: blocks, agents, groups, each kind oldest first."""
    kinds = entity_types or ("block", "agent", "group")
    entities: list[Rest] = []
    for kind, listed in _KINDS.items():
        if kind in kinds:
            entities += [_entity(kind, each) for each in await listed(loci, deployment_id)]
    return json_response(
        {
            "entities": entities,
            "total_count": len(entities),
            "deployment_id": deployment_id,
            "message": f"{len(entities)} found",
        }
    )


@router.delete("/deployment/{deployment_id}")
@returns(DELETED)
async def delete_deployment(deployment_id: str, loci: Loci) -> Response:
    """Deletes what has the deployment id. Repeating it is harmless: it deletes what is left."""
    deleted: dict[str, list[str]] = {}
    # Groups name agents, agents have blocks.
    for kind, delete in (("group", _delete_group), ("agent", _delete_agent), ("block", _delete_block)):
        ids = [each.id for each in await _KINDS[kind](loci, deployment_id)]
        for entity_id in ids:
            await delete(loci, entity_id)
        deleted[f"deleted_{kind}s"] = ids
    return json_response(deleted | {"message": f"{sum(map(len, deleted.values()))} deleted"})


def _entity(kind: str, entity: Any) -> Rest:
    rest = convert.to_rest(entity)
    return {
        "id": entity.id,
        "type": kind,
        "name": rest.get("template_name" if kind == "block" else "name"),
        "description": rest.get("description"),
        "entity_id": rest.get("entity_id"),
        "project_id": rest.get("project_id"),
    }


async def _blocks(loci: Services, deployment_id: str) -> Sequence[Any]:
    request = block_service_pb2.ListBlocksRequest(deployment_id=deployment_id, show_hidden=True)
    return await _all(loci, loci.peers.blocks.ListBlocks, request, "blocks")


async def _agents(loci: Services, deployment_id: str) -> Sequence[Any]:
    request = agent_service_pb2.ListAgentsRequest(
        deployment_id=deployment_id, show_hidden=True, page=_OLDEST_FIRST, omit_relations=True
    )
    return await _all(loci, loci.peers.agents.ListAgents, request, "agents")


async def _groups(loci: Services, deployment_id: str) -> Sequence[Any]:
    request = group_service_pb2.ListGroupsRequest(deployment_id=deployment_id, show_hidden=True, page=_OLDEST_FIRST)
    return await _all(loci, loci.peers.groups.ListGroups, request, "groups")


_KINDS: dict[str, Callable[[Services, str], Awaitable[Sequence[Any]]]] = {
    "block": _blocks,
    "agent": _agents,
    "group": _groups,
}


async def _all(loci: Services, rpc: Any, request: Any, name: str) -> Sequence[Any]:
    """Returns every page of a list."""
    request.page.page_size = MOST_PER_PAGE
    items: list[Any] = []
    while True:
        page = await loci.peers.call(rpc, request)
        items += getattr(page, name)
        if not page.next_page_token:
            return items
        request.page.page_token = page.next_page_token


async def _delete_group(loci: Services, group_id: str) -> None:
    await _delete(loci, loci.peers.groups.DeleteGroup, group_service_pb2.DeleteGroupRequest(group_id=group_id))


async def _delete_agent(loci: Services, agent_id: str) -> None:
    await _delete(loci, loci.peers.agents.DeleteAgent, agent_service_pb2.DeleteAgentRequest(agent_id=agent_id))


async def _delete_block(loci: Services, block_id: str) -> None:
    await _delete(loci, loci.peers.blocks.DeleteBlock, block_service_pb2.DeleteBlockRequest(block_id=block_id))


async def _delete(loci: Services, rpc: Any, request: Any) -> None:
    """Deletes what may be gone already: an agent takes with it what is its own."""
    try:
        await loci.peers.call(rpc, request)
    except NotFound:
        return
