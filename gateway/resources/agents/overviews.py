"""Agents counted, their core memory alone, and older names of what there is under others."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import TEXT, WHOLE
from gateway.resources.agents.routes import StopReasonName, fetch, states, stop_reason_number
from gateway.resources.agents.schemas import MEMORY
from gateway.resources.conversations.routes import recompile_agent
from gateway.rest.params import AgentId, IdentityFilter, Names, UserFilter
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import agent_service_pb2

router = APIRouter(prefix="/agents", tags=["agents"])


@router.get("/count")
@returns(WHOLE)
async def count_agents(
    loci: Loci,
    name: str | None = None,
    tags: Names = None,
    match_all_tags: bool = False,
    query_text: str | None = None,
    show_hidden_agents: bool = False,
    identity_id: IdentityFilter = None,
    identifier_keys: Names = None,
    template_id: str | None = None,
    base_template_id: str | None = None,
    project_id: str | None = None,
    created_by_id: UserFilter = None,
    last_stop_reason: StopReasonName | None = None,
) -> Response:
    """How many agents there are: all, or those that the filters of their list leave."""
    rpc_request = agent_service_pb2.ListAgentsRequest(
        name=name,
        tags=tags,
        match_all_tags=match_all_tags,
        query_text=query_text,
        show_hidden=show_hidden_agents,
        identity_id=identity_id,
        identifier_keys=identifier_keys,
        template_id=template_id,
        base_template_id=base_template_id,
        project_id=project_id,
        created_by_id=created_by_id,
        last_stop_reason=stop_reason_number(last_stop_reason),
    )
    request = agent_service_pb2.CountAgentsRequest(filter=rpc_request)
    return json_response((await loci.peers.call(loci.peers.agents.CountAgents, request)).count)


@router.get("/{agent_id}/core-memory", deprecated=True)
@returns(MEMORY)
async def retrieve_core_memory(agent_id: AgentId, loci: Loci) -> Response:
    """The agent's blocks, as its `memory` has them."""
    [state] = await states(loci, [await fetch(loci, agent_id)], frozenset({"agent.blocks"}))
    return json_response(state["memory"])


@router.post("/{agent_id}/system-prompt/recompile", deprecated=True)
@returns(TEXT)
async def recompile_system_prompt(
    agent_id: AgentId,
    loci: Loci,
    dry_run: bool = False,
    update_timestamp: Annotated[bool, Query(description="The time is updated unless it is a dry run.")] = False,
) -> Response:
    """The older name of POST /v1/agents/{agent_id}/recompile."""
    return await recompile_agent(agent_id, loci, dry_run, update_timestamp)
