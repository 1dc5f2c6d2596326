"""The blocks and tools that are attached to an agent."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.agents.requests import ToolApproval
from gateway.resources.agents.routes import answer, attach_to, fetch
from gateway.resources.agents.schemas import AGENT
from gateway.resources.blocks import requests as bodies
from gateway.resources.blocks.responses import block_to_rest
from gateway.resources.blocks.schemas import BLOCK
from gateway.resources.tools.responses import tool_to_rest
from gateway.resources.tools.schemas import TOOL
from gateway.rest.paging import FIRST_PAGE, descending, one_page, paged
from gateway.rest.params import AgentId, BlockId, ToolId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import agent_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_service_pb2
from loci.tool.v1 import tool_pb2

router = APIRouter(prefix="/agents/{agent_id}", tags=["agents"])


@router.get("/core-memory/blocks")
@returns(array(BLOCK))
@paged(100, "asc")
async def list_blocks(
    agent_id: AgentId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """The agent's blocks, oldest first."""
    request = block_service_pb2.ListBlocksRequest(
        agent_id=agent_id,
        page=page,
        show_hidden=True,
    )
    # The memory service does not know which agents there are.
    _, response = await asyncio.gather(fetch(loci, agent_id), loci.peers.call(loci.peers.blocks.ListBlocks, request))
    return json_response([block_to_rest(block) for block in response.blocks])


@router.get("/core-memory/blocks/{block_label}")
@returns(BLOCK)
async def retrieve_block(agent_id: AgentId, block_label: str, loci: Loci) -> Response:
    """The block that the agent knows by this label."""
    request = block_service_pb2.GetBlockRequest(key=_key(agent_id, block_label))
    return json_response(block_to_rest((await loci.peers.call(loci.peers.blocks.GetBlock, request)).block))


@router.patch("/core-memory/blocks/{block_label}")
@returns(BLOCK)
async def update_block(agent_id: AgentId, block_label: str, body: bodies.UpdateBlock, loci: Loci) -> Response:
    """Changes what the body names of the block that the agent knows by this label."""
    key = _key(agent_id, block_label)
    request = bodies.update_request(key, body)
    if request is None:
        return await retrieve_block(agent_id, block_label, loci)
    return json_response(block_to_rest((await loci.peers.call(loci.peers.blocks.UpdateBlock, request)).block))


@router.patch("/core-memory/blocks/attach/{block_id}")
@returns(AGENT)
async def attach_block(agent_id: AgentId, block_id: BlockId, loci: Loci) -> Response:
    """Attaches a block and returns the agent. An agent that tends its memory gets the block, too."""
    await attach_to(loci, await fetch(loci, agent_id), block_id)
    return await answer(loci, await fetch(loci, agent_id))


@router.patch("/core-memory/blocks/detach/{block_id}")
@returns(AGENT)
async def detach_block(agent_id: AgentId, block_id: BlockId, loci: Loci) -> Response:
    """Detaches a block and returns the agent."""
    await fetch(loci, agent_id)
    request = block_service_pb2.DetachBlockRequest(agent_id=agent_id, block_id=block_id)
    await loci.peers.call(loci.peers.blocks.DetachBlock, request)
    return await answer(loci, await fetch(loci, agent_id))


@router.get("/tools")
@returns(array(TOOL))
@paged(10)
async def list_tools(
    agent_id: AgentId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """The agent's tools, newest first, ten of them."""
    agent = await fetch(loci, agent_id)
    tools = sorted(agent.tools, key=_age, reverse=descending(page))
    return json_response([tool_to_rest(tool) for tool in one_page(tools, page, key=lambda tool: tool.id)])


@router.patch("/tools/attach/{tool_id}")
@returns(NULL)
async def attach_tool(agent_id: AgentId, tool_id: ToolId, loci: Loci) -> Response:
    """Attaches a tool."""
    request = agent_service_pb2.AttachToolRequest(agent_id=agent_id, tool_id=tool_id)
    await loci.peers.call(loci.peers.agents.AttachTool, request)
    return json_response(None)


@router.patch("/tools/detach/{tool_id}")
@returns(NULL)
async def detach_tool(agent_id: AgentId, tool_id: ToolId, loci: Loci) -> Response:
    """Detaches a tool, if it is attached."""
    request = agent_service_pb2.DetachToolRequest(agent_id=agent_id, tool_id=tool_id)
    await loci.peers.call(loci.peers.agents.DetachTool, request)
    return json_response(None)


@router.patch("/tools/approval/{tool_name}")
@returns(NULL)
async def update_approval(
    agent_id: AgentId,
    tool_name: str,
    loci: Loci,
    body: ToolApproval | None = None,
    requires_approval: Annotated[bool | None, Query(deprecated=True)] = None,
) -> Response:
    """Sets whether calls of a tool wait for approval. The body counts before the parameter."""
    required = requires_approval if body is None else body.requires_approval
    if required is None:
        raise InvalidRequest("`requires_approval` is missing", "body", "requires_approval")
    request = agent_service_pb2.SetToolApprovalRequest(
        agent_id=agent_id, tool_name=tool_name, requires_approval=required
    )
    await loci.peers.call(loci.peers.agents.SetToolApproval, request)
    return json_response(None)


def _key(agent_id: str, label: str) -> block_service_pb2.BlockKey:
    return block_service_pb2.BlockKey(agent_label=block_service_pb2.AgentLabel(agent_id=agent_id, label=label))


def _age(tool: tool_pb2.Tool) -> tuple[int, str]:
    return tool.created_at.ToNanoseconds(), tool.id
