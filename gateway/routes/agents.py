"""Agents: create, list, retrieve, update, delete."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.agent_state import RELATIONS, agent_state
from gateway.bodies import agents as bodies
from gateway.bodies.common import Json
from gateway.body import JsonRoute
from gateway.convert import from_json
from gateway.params import AgentId, Cursor, Limit, Names, Order, one_page, page_size, unsupported
from gateway.responses import json_response
from gateway.services import Loci, Services
from loci.agent.v1 import agent_pb2, agent_service_pb2
from loci.memory.v1 import block_service_pb2
from services.common.errors import NotFound

T = TypeVar("T")

router = APIRouter(prefix="/agents", tags=["agents"], route_class=JsonRoute)

Relation = Literal[
    "agent.blocks",
    "agent.identities",
    "agent.managed_group",
    "agent.pending_approval",
    "agent.secrets",
    "agent.sources",
    "agent.tags",
    "agent.tools",
]
Include = Annotated[list[Relation] | None, Query(description="Relations to show; the others are left empty.")]
_ORDERS = {
    "created_at": agent_service_pb2.AGENT_ORDER_CREATED_AT,
    "updated_at": agent_service_pb2.AGENT_ORDER_UPDATED_AT,
}
_AGENTS_AT_ONCE = 16
# The older spelling of `include`.
_OLD_RELATIONS = {name.removeprefix("agent."): name for name in RELATIONS} | {"memory": "agent.blocks"}


@router.post("")
async def create_agent(body: bodies.CreateAgent, loci: Loci) -> Response:
    """Creates an agent with its blocks and tools."""
    request = bodies.create_request(body)
    created = await loci.peers.call(loci.peers.agents.CreateAgent, request)
    return await answer(loci, created.agent)


@router.get("")
async def list_agents(
    request: Request,
    loci: Loci,
    name: str | None = None,
    tags: Names = None,
    match_all_tags: bool = False,
    before: Cursor = None,
    after: Cursor = None,
    limit: Limit = None,
    query_text: str | None = None,
    include: Include = None,
    include_relationships: Names = None,
    order: Order | None = None,
    order_by: Literal["created_at", "updated_at", "last_run_completion"] | None = None,
    ascending: Annotated[bool, Query(deprecated=True)] = False,
    sort_by: Annotated[str | None, Query(deprecated=True)] = None,
    show_hidden_agents: bool = False,
    identity_id: str | None = None,
    identifier_keys: Names = None,
    template_id: str | None = None,
    base_template_id: str | None = None,
    project_id: str | None = None,
    created_by_id: str | None = None,
    last_stop_reason: str | None = None,
) -> Response:
    """A page of agents, newest first."""
    order_name = order_by or sort_by or "created_at"
    unsupported(
        project_id=project_id,
        created_by_id=created_by_id,
        last_stop_reason=last_stop_reason,
        order_by=None if order_name in _ORDERS else order_name,
    )
    if identity_id or identifier_keys or template_id or base_template_id:
        return json_response([])  # no agent has any of these
    shown = _relations(include, include_relationships)
    if shown is None and "x-stainless-package-version" in request.headers:
        shown = frozenset()  # what the SDK documents for its lists
    page = await loci.peers.call(
        loci.peers.agents.ListAgents,
        agent_service_pb2.ListAgentsRequest(
            page_size=page_size(limit, 50),
            after=after,
            before=before,
            ascending=ascending if order is None else order == "asc",
            name=name,
            tags=tags,
            match_all_tags=match_all_tags,
            query_text=query_text,
            show_hidden=show_hidden_agents,
            order_by=_ORDERS[order_name],
            omit_relations=shown is not None and shown.isdisjoint({"agent.blocks", "agent.tools", "agent.sources"}),
        ),
    )
    models = await loci.catalogue.models()
    return json_response([agent_state(agent, models, shown) for agent in page.agents])


@router.get("/{agent_id}")
async def retrieve_agent(
    agent_id: AgentId, loci: Loci, include: Include = None, include_relationships: Names = None
) -> Response:
    """One agent, with everything unless `include` chooses."""
    agent = await fetch(loci, agent_id)
    return await answer(loci, agent, _relations(include, include_relationships))


@router.patch("/{agent_id}")
async def update_agent(agent_id: AgentId, body: bodies.UpdateAgent, loci: Loci) -> Response:
    """Changes what the body names. Turns under way keep the settings they began with."""
    settings: Json = {}
    if bodies.needs_settings(body):
        settings = from_json((await fetch(loci, agent_id)).model_settings_json) or {}
    request = bodies.update_request(agent_id, body, settings)
    if request is not None:
        await loci.peers.call(loci.peers.agents.UpdateAgent, request)
    agent = await fetch(loci, agent_id)
    if body.block_ids is not None:
        await _set_blocks(loci, agent, body.block_ids)
        agent = await fetch(loci, agent_id)
    if (folder_ids := bodies.folder_ids(body)) is not None:
        agent = await _set_folders(loci, agent, folder_ids)
    return await answer(loci, agent)


@router.delete("/{agent_id}")
async def delete_agent(agent_id: AgentId, loci: Loci) -> Response:
    """Deletes an agent and its messages; its blocks stay."""
    request = agent_service_pb2.DeleteAgentRequest(agent_id=agent_id)
    await loci.peers.call(loci.peers.agents.DeleteAgent, request)
    return json_response(None)


@router.patch("/{agent_id}/reset-messages")
async def reset_messages(agent_id: AgentId, loci: Loci, body: bodies.ResetMessages | None = None) -> Response:
    """Begins the agent's default conversation anew; the agent can still search what was said."""
    request = agent_service_pb2.ResetMessagesRequest(agent_id=agent_id)
    return await answer(loci, (await loci.peers.call(loci.peers.agents.ResetMessages, request)).agent)


async def fetch(loci: Services, agent_id: str) -> agent_pb2.Agent:
    """The agent. Raises NotFound."""
    request = agent_service_pb2.GetAgentRequest(agent_id=agent_id)
    return (await loci.peers.call(loci.peers.agents.GetAgent, request)).agent


async def fetch_all(loci: Services, agent_ids: Sequence[str]) -> list[agent_pb2.Agent]:
    """The agents, without those that are gone: an attachment may outlive its agent for a while."""

    async def one(agent_id: str) -> agent_pb2.Agent | None:
        try:
            return await fetch(loci, agent_id)
        except NotFound:
            return None

    return [agent for agent in await for_each(agent_ids, one) if agent is not None]


async def attached_page(
    loci: Services,
    agent_ids: Sequence[str],
    *,
    after: str | None,
    before: str | None,
    size: int,
    order: str,
    include: Sequence[str] | None,
) -> Response:
    """A page of the agents that something is attached to, whose ids are in the order of attachment."""
    ids = list(agent_ids)
    if order == "desc":
        ids.reverse()
    ids = one_page(ids, key=str, after=after, before=before, limit=size)
    agents, models = await fetch_all(loci, ids), await loci.catalogue.models()
    shown = None if include is None else frozenset(include)
    return json_response([agent_state(agent, models, shown) for agent in agents])


async def for_each(agent_ids: Sequence[str], act: Callable[[str], Awaitable[T]]) -> list[T]:
    """What `act` answers for each agent, in order; a few at a time."""
    gate = asyncio.Semaphore(_AGENTS_AT_ONCE)

    async def one(agent_id: str) -> T:
        async with gate:
            return await act(agent_id)

    return await asyncio.gather(*map(one, agent_ids))


async def answer(loci: Services, agent: agent_pb2.Agent, shown: frozenset[str] | None = None) -> Response:
    """The agent as REST."""
    return json_response(agent_state(agent, await loci.catalogue.models(), shown))


def _relations(include: Sequence[str] | None, older: Sequence[str] | None) -> frozenset[str] | None:
    if include is not None:
        return frozenset(include)
    if older is not None:
        return frozenset(_OLD_RELATIONS.get(name, name) for name in older)
    return None


async def _set_blocks(loci: Services, agent: agent_pb2.Agent, block_ids: Sequence[str]) -> None:
    """Makes `block_ids` the attached blocks. Detaches first: a new block may have the label of one that goes."""
    peers = loci.peers
    attached = {block.id for block in agent.blocks}
    for block_id in attached.difference(block_ids):
        detach = block_service_pb2.DetachBlockRequest(agent_id=agent.id, block_id=block_id)
        await peers.call(peers.blocks.DetachBlock, detach)
    for block_id in block_ids:
        if block_id not in attached:
            attach = block_service_pb2.AttachBlockRequest(agent_id=agent.id, block_id=block_id)
            await peers.call(peers.blocks.AttachBlock, attach)


async def _set_folders(loci: Services, agent: agent_pb2.Agent, folder_ids: Sequence[str]) -> agent_pb2.Agent:
    """Makes `folder_ids` the attached folders. Attaches first: with the last folder the tools for files would go."""
    peers, attached = loci.peers, {folder.id for folder in agent.folders}
    for folder_id in folder_ids:
        if folder_id not in attached:
            attach = agent_service_pb2.AttachFolderRequest(agent_id=agent.id, folder_id=folder_id)
            agent = (await peers.call(peers.agents.AttachFolder, attach)).agent
    for folder_id in attached.difference(folder_ids):
        detach = agent_service_pb2.DetachFolderRequest(agent_id=agent.id, folder_id=folder_id)
        agent = (await peers.call(peers.agents.DetachFolder, detach)).agent
    return agent
