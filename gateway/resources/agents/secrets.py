"""The secrets of an agent as a list of their own, as terminal clients ask for them."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.agents.routes import fetch
from gateway.resources.sandbox_configs.responses import agent_secrets
from gateway.resources.sandbox_configs.schemas import SECRET
from gateway.rest.params import AgentId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci

router = APIRouter(prefix="/agents", tags=["agents"])


@router.get("/{agent_id}/secrets")
@returns(array(SECRET))
async def list_secrets(agent_id: AgentId, loci: Loci) -> Response:
    """The agent's secrets, by key; none for who may not see them. PATCH the agent to change them."""
    await fetch(loci, agent_id)
    return json_response((await agent_secrets(loci, [agent_id])).get(agent_id, []))
