"""Groups of agents. The reference calls them deprecated; they work all the same. Their turns are in messages.py."""

import asyncio
from typing import Literal

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, WHOLE, array
from gateway.resources.agents.routes import fetch
from gateway.resources.groups import requests as bodies
from gateway.resources.groups.responses import group
from gateway.resources.groups.schemas import GROUP
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentId, BlockId, GroupId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import group_pb2
from loci.agent.v1 import group_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest

router = APIRouter(tags=["groups"])
_OLD = APIRouter(prefix="/groups")

ManagerType = Literal["round_robin", "supervisor", "dynamic", "sleeptime", "voice_sleeptime", "swarm"]


@_OLD.get("")
@returns(array(GROUP))
@paged(50)
async def list_groups(
    loci: Loci,
    manager_type: ManagerType | None = None,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    project_id: str | None = None,
    show_hidden_groups: bool = False,
) -> Response:
    """A page of groups, newest first. Deprecated in the reference."""
    request = wire.ListGroupsRequest(
        page=page,
        manager_type=manager_type,
        project_id=project_id,
        show_hidden=show_hidden_groups,
    )
    response = await loci.peers.call(loci.peers.groups.ListGroups, request)
    return json_response([group(each) for each in response.groups])


@_OLD.get("/count")
@returns(WHOLE)
async def count_groups(loci: Loci) -> Response:
    """How many there are, hidden ones too. Deprecated in the reference."""
    return json_response((await loci.peers.call(loci.peers.groups.CountGroups, wire.CountGroupsRequest())).groups)


@_OLD.get("/{group_id}")
@returns(GROUP)
async def retrieve_group(group_id: GroupId, loci: Loci) -> Response:
    """One group. Deprecated in the reference."""
    return json_response(group(await _fetch(loci, group_id)))


@_OLD.post("")
@returns(GROUP)
async def create_group(body: bodies.CreateGroup, loci: Loci) -> Response:
    """Creates a group; its shared blocks are attached to each of its agents. Deprecated in the reference."""
    created = await loci.peers.call(loci.peers.groups.CreateGroup, bodies.create_request(body))
    return json_response(group(created.group))


@_OLD.patch("/{group_id}")
@returns(GROUP)
async def update_group(group_id: GroupId, body: bodies.UpdateGroup, loci: Loci) -> Response:
    """Changes what the body names. Deprecated in the reference."""
    request = bodies.update_request(group_id, body)
    if request is None:
        return await retrieve_group(group_id, loci)
    return json_response(group((await loci.peers.call(loci.peers.groups.UpdateGroup, request)).group))


@_OLD.delete("/{group_id}")
@returns(NULL)
async def delete_group(group_id: GroupId, loci: Loci) -> Response:
    """Deletes a group; its agents stay, and keep the blocks. Deprecated in the reference."""
    await loci.peers.call(loci.peers.groups.DeleteGroup, wire.DeleteGroupRequest(group_id=group_id))
    return json_response(None)


@_OLD.patch("/{group_id}/blocks/attach/{block_id}")
@returns(NULL)
async def attach_block(group_id: GroupId, block_id: BlockId, loci: Loci) -> Response:
    """Attaches a block to each of its agents. Deprecated in the reference."""
    request = wire.AttachBlockRequest(group_id=group_id, block_id=block_id)
    await loci.peers.call(loci.peers.groups.AttachBlock, request)
    return json_response(None)


@_OLD.patch("/{group_id}/blocks/detach/{block_id}")
@returns(NULL)
async def detach_block(group_id: GroupId, block_id: BlockId, loci: Loci) -> Response:
    """Detaches a shared block from each of its agents. Deprecated in the reference."""
    request = wire.DetachBlockRequest(group_id=group_id, block_id=block_id)
    await loci.peers.call(loci.peers.groups.DetachBlock, request)
    return json_response(None)


@router.get("/agents/{agent_id}/groups")
@returns(array(GROUP))
@paged(50)
async def list_agent_groups(
    agent_id: AgentId,
    loci: Loci,
    manager_type: ManagerType | None = None,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
) -> Response:
    """A page of the groups that the agent is in, newest first."""
    request = wire.ListGroupsRequest(
        agent_id=agent_id,
        page=page,
        manager_type=manager_type,
        show_hidden=True,
    )
    response, _ = await asyncio.gather(loci.peers.call(loci.peers.groups.ListGroups, request), fetch(loci, agent_id))
    return json_response([group(each) for each in response.groups])


async def _fetch(loci: Services, group_id: str) -> group_pb2.Group:
    request = wire.GetGroupRequest(group_id=group_id)
    return (await loci.peers.call(loci.peers.groups.GetGroup, request)).group


router.include_router(_OLD, deprecated=True)
