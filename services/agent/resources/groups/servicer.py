"""GroupService: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from loci.agent.v1 import group_service_pb2 as wire
from loci.agent.v1 import group_service_pb2_grpc
from services.agent.resources.groups.convert import drafts, group_list, groups
from services.agent.resources.groups.service import Groups
from services.common.context import CallContext, current
from services.common.errors import NotFound
from services.common.ids import from_public, uuid7

# Deletes the agent that stands for a group.
Forget = Callable[[CallContext, UUID], Awaitable[object]]


class GroupServicer(group_service_pb2_grpc.GroupServiceServicer):
    """loci.agent.v1.GroupService; `wake`: tells that something was deleted."""

    def __init__(self, groups: Groups, forget: Forget, wake: Callable[[], None]) -> None:
        self._groups = groups
        self._forget = forget
        self._wake = wake

    async def CreateGroup(self, request: wire.CreateGroupRequest, context: Any) -> wire.CreateGroupResponse:
        """Creates a group: its shared blocks first, its row last."""
        group_id = from_public("group", request.group_id) if request.group_id else uuid7()
        group = await self._groups.create(current(), group_id, drafts.draft(request.group).values)
        return wire.CreateGroupResponse(group=groups.encode(group))

    async def GetGroup(self, request: wire.GetGroupRequest, context: Any) -> wire.GetGroupResponse:
        """Returns one group."""
        group = await self._groups.get(current().organization_id, from_public("group", request.group_id))
        return wire.GetGroupResponse(group=groups.encode(group))

    async def ListGroups(self, request: wire.ListGroupsRequest, context: Any) -> wire.ListGroupsResponse:
        """Returns one page."""
        page = await self._groups.list(current().organization_id, group_list(request))
        return wire.ListGroupsResponse(groups=map(groups.encode, page.items), next_page_token=page.next_token)

    async def CountGroups(self, request: wire.CountGroupsRequest, context: Any) -> wire.CountGroupsResponse:
        """Returns all of the tenant."""
        return wire.CountGroupsResponse(groups=await self._groups.count(current().organization_id))

    async def UpdateGroup(self, request: wire.UpdateGroupRequest, context: Any) -> wire.UpdateGroupResponse:
        """Changes the fields of the mask."""
        group_id = from_public("group", request.group_id)
        group = await self._groups.update(current(), group_id, drafts.draft(request.group, request.update_mask.paths))
        return wire.UpdateGroupResponse(group=groups.encode(group))

    async def DeleteGroup(self, request: wire.DeleteGroupRequest, context: Any) -> wire.DeleteGroupResponse:
        """Members stay."""
        group_id = from_public("group", request.group_id)
        await self._groups.delete(current(), group_id)
        with suppress(NotFound):
            # What was said in it; see groups/turns.py.
            await self._forget(current(), group_id)
            self._wake()
        return wire.DeleteGroupResponse()

    async def AttachBlock(self, request: wire.AttachBlockRequest, context: Any) -> wire.AttachBlockResponse:
        """Shares a block."""
        group_id, block_id = from_public("group", request.group_id), from_public("block", request.block_id)
        group = await self._groups.attach_block(current(), group_id, block_id)
        return wire.AttachBlockResponse(group=groups.encode(group))

    async def DetachBlock(self, request: wire.DetachBlockRequest, context: Any) -> wire.DetachBlockResponse:
        """Shares it no more."""
        group_id, block_id = from_public("group", request.group_id), from_public("block", request.block_id)
        group = await self._groups.detach_block(current(), group_id, block_id)
        return wire.DetachBlockResponse(group=groups.encode(group))
