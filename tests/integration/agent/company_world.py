"""Agents, identities and groups over gRPC, with the real memory service behind them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from google.protobuf.field_mask_pb2 import FieldMask

from loci.agent.v1 import agent_pb2, agent_service_pb2, group_pb2, identity_pb2
from loci.agent.v1 import group_service_pb2 as group_wire
from loci.agent.v1 import identity_service_pb2 as identity_wire
from loci.agent.v1.agent_pb2 import Agent
from loci.agent.v1.group_service_pb2_grpc import GroupServiceStub
from loci.agent.v1.identity_service_pb2_grpc import IdentityServiceStub
from loci.memory.v1 import block_pb2, block_service_pb2
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from services.common.channel import make_channel
from tests.integration.agent.admin_world import ORGANIZATION, AdminWorld
from tests.integration.agent.travel_world import travel_world


@dataclass
class Company:
    """Stubs, and the short way to what tests ask for."""

    world: AdminWorld
    identities: IdentityServiceStub
    groups: GroupServiceStub
    blocks: BlockServiceStub

    async def agent(self, **fields: Any) -> str:
        """A new agent's id."""
        return (await self.world.create(include_base_tools=False, **fields)).id

    async def update_agent(self, agent_id: str, paths: list[str], **fields: Any) -> Agent:
        """As it is then."""
        request = agent_service_pb2.UpdateAgentRequest(
            agent_id=agent_id, agent=agent_pb2.Agent(**fields), update_mask=FieldMask(paths=paths)
        )
        changed: Agent = (await self.world.call(self.world.agents.UpdateAgent, request)).agent
        return changed

    async def block(self, label: str) -> str:
        """A new block's id."""
        request = block_service_pb2.CreateBlockRequest(block=block_pb2.Block(label=label))
        created: str = (await self.world.call(self.blocks.CreateBlock, request)).block.id
        return created

    async def blocks_of(self, agent_id: str) -> set[str]:
        """Ids of the agent's blocks."""
        return {block.id for block in (await self.world.get(agent_id)).blocks}

    async def attach_block(self, agent_id: str, block_id: str) -> None:
        """To one agent."""
        request = block_service_pb2.AttachBlockRequest(agent_id=agent_id, block_id=block_id)
        await self.world.call(self.blocks.AttachBlock, request)

    async def about(self, identity_id: str) -> list[str]:
        """Ids of the blocks about an identity, as memory has them."""
        request = block_service_pb2.ListBlocksRequest(identity_ids=[identity_id])
        return [block.id for block in (await self.world.call(self.blocks.ListBlocks, request)).blocks]

    async def identity(
        self, key: str = "ada", organization_id: UUID = ORGANIZATION, **fields: Any
    ) -> identity_pb2.Identity:
        """A new identity."""
        draft = {"identifier_key": key, "name": key.title(), "identity_type": "user"} | fields
        outer = {"identity_id": draft.pop("identity_id")} if "identity_id" in draft else {}
        request = identity_wire.CreateIdentityRequest(identity=identity_pb2.Identity(**draft), **outer)
        made: identity_pb2.Identity = (
            await self.world.call(self.identities.CreateIdentity, request, organization_id)
        ).identity
        return made

    async def get_identity(self, identity_id: str, organization_id: UUID = ORGANIZATION) -> identity_pb2.Identity:
        """As it is now."""
        request = identity_wire.GetIdentityRequest(identity_id=identity_id)
        found: identity_pb2.Identity = (
            await self.world.call(self.identities.GetIdentity, request, organization_id)
        ).identity
        return found

    async def update_identity(self, identity_id: str, paths: list[str], **fields: Any) -> identity_pb2.Identity:
        """As it is then."""
        request = identity_wire.UpdateIdentityRequest(
            identity_id=identity_id,
            identity=identity_pb2.Identity(**fields),
            update_mask=FieldMask(paths=paths),
        )
        changed: identity_pb2.Identity = (await self.world.call(self.identities.UpdateIdentity, request)).identity
        return changed

    async def group(self, organization_id: UUID = ORGANIZATION, **fields: Any) -> group_pb2.Group:
        """A new group."""
        outer = {"group_id": fields.pop("group_id")} if "group_id" in fields else {}
        draft = group_pb2.Group(**{"description": "Those who go."} | fields)
        request = group_wire.CreateGroupRequest(group=draft, **outer)
        made: group_pb2.Group = (await self.world.call(self.groups.CreateGroup, request, organization_id)).group
        return made

    async def get_group(self, group_id: str) -> group_pb2.Group:
        """As it is now."""
        request = group_wire.GetGroupRequest(group_id=group_id)
        found: group_pb2.Group = (await self.world.call(self.groups.GetGroup, request)).group
        return found

    async def update_group(self, group_id: str, paths: list[str], **fields: Any) -> group_pb2.Group:
        """As it is then."""
        request = group_wire.UpdateGroupRequest(
            group_id=group_id, group=group_pb2.Group(**fields), update_mask=FieldMask(paths=paths)
        )
        changed: group_pb2.Group = (await self.world.call(self.groups.UpdateGroup, request)).group
        return changed


@asynccontextmanager
async def company_world(urls: tuple[str, str], folder: Path) -> AsyncGenerator[Company]:
    """Both services, with no agents, identities or groups."""
    async with (
        travel_world(*urls, folder) as travel,
        make_channel(travel.world.address) as channel,
        make_channel(f"unix://{folder}/memory") as memory,
    ):
        for table in ("agents", "identities", "groups", "outbox"):
            await travel.world.pool.execute(f"DELETE FROM agent.{table}")
        yield Company(travel.world, IdentityServiceStub(channel), GroupServiceStub(channel), BlockServiceStub(memory))
