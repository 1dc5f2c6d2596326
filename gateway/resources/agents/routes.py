"""Agents: create, list, retrieve, update, delete."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, TypeVar

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.access.run_tokens import check_members
from gateway.agent_files.instantiation import make_agents
from gateway.openapi.answers import returns
from gateway.openapi.schemas import MESSAGE, array
from gateway.resources.agents import requests as bodies
from gateway.resources.agents.relations import Include, relations_of
from gateway.resources.agents.responses import agent_state, tools_once
from gateway.resources.agents.schemas import AGENT
from gateway.resources.sandbox_configs.responses import agent_secrets
from gateway.resources.templates.requests import named_version
from gateway.rest.body import ENUM, Json
from gateway.rest.convert import Rest, from_json
from gateway.rest.paging import FIRST_PAGE, Order, descending, one_page, paged, set_order
from gateway.rest.params import AgentId, IdentityFilter, Names, UserFilter, unsupported
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.agent.v1 import agent_pb2, agent_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import block_service_pb2
from services.common.errors import InvalidArgument, NotFound
from services.common.fields import enum_numbers

T = TypeVar("T")

router = APIRouter(prefix="/agents", tags=["agents"])

StopReasonName = Annotated[
    Literal[
        "end_turn",
        "error",
        "llm_api_error",
        "invalid_llm_response",
        "invalid_tool_call",
        "max_steps",
        "max_tokens_exceeded",
        "no_tool_call",
        "tool_rule",
        "cancelled",
        "insufficient_credits",
        "requires_approval",
        "context_window_overflow_in_system_prompt",
    ],
    ENUM,
]
_ORDERS = {
    "created_at": agent_service_pb2.AGENT_ORDER_CREATED_AT,
    "updated_at": agent_service_pb2.AGENT_ORDER_UPDATED_AT,
    "last_run_completion": agent_service_pb2.AGENT_ORDER_LAST_RUN_COMPLETION,
}
_STOP_REASONS = enum_numbers(agent_pb2.StopReason.DESCRIPTOR)
_AGENTS_AT_ONCE = 16


@router.post("")
@returns(AGENT)
async def create_agent(body: bodies.CreateAgent, loci: Loci) -> Response:
    """Creates an agent with its blocks and tools; with `from_template` all agents of a template, and answers the first.

    Deprecated: `from_template`, `memory_variables`; see /v1/templates/{template_version}/agents.
    """
    # A template brings code.
    check_members(body.model_fields_set, "from_template")
    if body.from_template:
        name, version = named_version(body.from_template, "from_template")
        made = await make_agents(loci, name, version, bodies.filling(body))
        return await answer(loci, await fetch(loci, made.agent_ids[0]))
    request = bodies.create_request(body)
    try:
        created = await loci.peers.call(loci.peers.agents.CreateAgent, request)
    except NotFound as error:
        if error.reason != "TOOL_NOT_FOUND":
            raise
        # The body is wrong, and nothing of the path is missing.
        raise InvalidArgument(error.message, reason="TOOLS_INVALID") from None
    return await answer(loci, created.agent)


@router.get("")
@returns(array(AGENT))
@paged(50, names="before after limit")
async def list_agents(
    request: Request,
    loci: Loci,
    name: str | None = None,
    tags: Names = None,
    match_all_tags: bool = False,
    page: PageRequest = FIRST_PAGE,
    query_text: str | None = None,
    include: Include = None,
    include_relationships: Names = None,
    order: Order | None = None,
    order_by: Literal["created_at", "updated_at", "last_run_completion"] | None = None,
    ascending: Annotated[bool, Query(deprecated=True)] = False,
    sort_by: Annotated[str | None, Query(deprecated=True)] = None,
    show_hidden_agents: bool = False,
    identity_id: IdentityFilter = None,
    identifier_keys: Names = None,
    template_id: str | None = None,
    base_template_id: str | None = None,
    project_id: str | None = None,
    created_by_id: UserFilter = None,
    last_stop_reason: StopReasonName | None = None,
) -> Response:
    """A page of agents, newest first."""
    order_name = order_by or sort_by or "created_at"
    unsupported(order_by=None if order_name in _ORDERS else order_name)
    relations = relations_of(request, include, include_relationships)
    set_order(page, ascending=ascending if order is None else order == "asc")
    response = await loci.peers.call(
        loci.peers.agents.ListAgents,
        agent_service_pb2.ListAgentsRequest(
            page=page,
            name=name,
            tags=tags,
            match_all_tags=match_all_tags,
            query_text=query_text,
            show_hidden=show_hidden_agents,
            order_by=_ORDERS[order_name],
            identity_id=identity_id,
            identifier_keys=identifier_keys,
            template_id=template_id,
            base_template_id=base_template_id,
            project_id=project_id,
            created_by_id=created_by_id,
            last_stop_reason=stop_reason_number(last_stop_reason),
            omit_relations=relations is not None
            and relations.isdisjoint({"agent.blocks", "agent.tools", "agent.sources"}),
        ),
    )
    return json_response(await states(loci, response.agents, relations))


@router.get("/{agent_id}")
@returns(AGENT)
async def retrieve_agent(
    request: Request, agent_id: AgentId, loci: Loci, include: Include = None, include_relationships: Names = None
) -> Response:
    """One agent. SDKs of release 1.0 or later get the relations that they name in `include`, other clients all."""
    relations = relations_of(request, include, include_relationships)
    # At once: one more call behind the other would be felt.
    agent, models, secrets = await asyncio.gather(
        fetch(loci, agent_id), loci.catalogue.models(), _secrets(loci, [agent_id], relations)
    )
    return json_response(agent_state(agent, models, relations, secrets.get(agent.id, ())))


@router.patch("/{agent_id}")
@returns(AGENT)
async def update_agent(agent_id: AgentId, body: bodies.UpdateAgent, loci: Loci) -> Response:
    """Changes what the body names. Turns under way keep the settings they began with."""
    # A rule may say that a call waits for a person.
    check_members(body.model_fields_set, "tool_rules")
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
@returns(MESSAGE)
async def delete_agent(agent_id: AgentId, loci: Loci) -> Response:
    """Deletes an agent and its messages; its blocks stay."""
    request = agent_service_pb2.DeleteAgentRequest(agent_id=agent_id)
    await loci.peers.call(loci.peers.agents.DeleteAgent, request)
    return json_response({"message": f"Agent id={agent_id} successfully deleted"})


@router.patch("/{agent_id}/reset-messages")
@returns(AGENT)
async def reset_messages(agent_id: AgentId, loci: Loci, body: bodies.ResetMessages | None = None) -> Response:
    """Begins the agent's default conversation anew; the agent can still search what was said."""
    request = agent_service_pb2.ResetMessagesRequest(agent_id=agent_id)
    return await answer(loci, (await loci.peers.call(loci.peers.agents.ResetMessages, request)).agent)


async def fetch(loci: Services, agent_id: str) -> agent_pb2.Agent:
    """Returns the agent. Raises NotFound."""
    request = agent_service_pb2.GetAgentRequest(agent_id=agent_id)
    return (await loci.peers.call(loci.peers.agents.GetAgent, request)).agent


async def fetch_all(loci: Services, agent_ids: Sequence[str]) -> list[agent_pb2.Agent]:
    """Returns the agents, without those that are gone: an attachment may outlive its agent for a while."""

    async def one(agent_id: str) -> agent_pb2.Agent | None:
        try:
            return await fetch(loci, agent_id)
        except NotFound:
            return None

    return [agent for agent in await for_each(agent_ids, one) if agent is not None]


async def attached_page(
    loci: Services,
    agent_ids: Sequence[str],
    page: PageRequest,
    relations: frozenset[str] | None,
) -> Response:
    """Returns a page of the agents that something is attached to, whose ids are in the order of attachment."""
    ids = list(agent_ids)
    if descending(page):
        ids.reverse()
    ids = one_page(ids, page, key=str)
    return json_response(await states(loci, await fetch_all(loci, ids), relations))


async def for_each(agent_ids: Sequence[str], act: Callable[[str], Awaitable[T]]) -> list[T]:
    """Returns the answer of `act` for each agent, in order; a few at a time."""
    gate = asyncio.Semaphore(_AGENTS_AT_ONCE)

    async def one(agent_id: str) -> T:
        async with gate:
            return await act(agent_id)

    return await asyncio.gather(*map(one, agent_ids))


async def answer(loci: Services, agent: agent_pb2.Agent, relations: frozenset[str] | None = None) -> Response:
    """Returns the agent as REST."""
    return json_response((await states(loci, [agent], relations))[0])


async def _secrets(loci: Services, agent_ids: Sequence[str], relations: frozenset[str] | None) -> dict[str, list[Rest]]:
    wanted_ids = agent_ids if relations is None or "agent.secrets" in relations else ()
    return await agent_secrets(loci, wanted_ids)


async def states(loci: Services, agents: Sequence[agent_pb2.Agent], relations: frozenset[str] | None) -> list[Rest]:
    """Returns the agents as REST. Their secrets are asked for at once, and only where they are shown."""
    ids = [agent.id for agent in agents]
    models, secrets = await asyncio.gather(loci.catalogue.models(), _secrets(loci, ids, relations))
    as_tool = tools_once()
    return [agent_state(agent, models, relations, secrets.get(agent.id, ()), as_tool) for agent in agents]


def stop_reason_number(name: StopReasonName | None) -> agent_pb2.StopReason.ValueType:
    """Returns a stop reason in a request; unspecified for none."""
    return agent_pb2.StopReason.ValueType(_STOP_REASONS[name] if name else 0)


async def _set_blocks(loci: Services, agent: agent_pb2.Agent, block_ids: Sequence[str]) -> None:
    """Makes `block_ids` the attached blocks. Detaches first: a new block may have the label of one that goes."""
    peers = loci.peers
    attached = {block.id for block in agent.blocks}
    for block_id in attached.difference(block_ids):
        detach = block_service_pb2.DetachBlockRequest(agent_id=agent.id, block_id=block_id)
        await peers.call(peers.blocks.DetachBlock, detach)
    for block_id in block_ids:
        if block_id not in attached:
            await attach_to(loci, agent, block_id)


async def attach_to(loci: Services, agent: agent_pb2.Agent, block_id: str) -> None:
    """Attaches a block to the agent, and before it to those that tend its memory."""
    group = agent.managed_group
    tending = group.agent_ids if group.manager_type == "sleeptime" else ()
    for agent_id in (*tending, agent.id):
        attach = block_service_pb2.AttachBlockRequest(agent_id=agent_id, block_id=block_id)
        await loci.peers.call(loci.peers.blocks.AttachBlock, attach)


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
