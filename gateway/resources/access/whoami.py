"""The caller of a request: its tenant, its role, and what it may do. Loci's own."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.access.roles import MAY, Right
from gateway.openapi.answers import returns
from gateway.resources.access.schemas import CALLER
from gateway.rest.responses import json_response
from gateway.rest.services import caller_of
from services.common.ids import to_public

router = APIRouter(tags=["access"])


@router.get("/whoami")
@returns(CALLER)
async def retrieve_caller(request: Request) -> Response:
    """Returns who the request is made for. `agents` holds what the credential may do with each agent that it is limited
    to; null: it is not limited. `rights` holds what its role may do elsewhere.
    """
    caller = caller_of(request)
    grant = caller.grant
    agents = None
    if grant is not None and grant.agents is not None:
        agents = {agent_id: _names(rights) for agent_id, rights in sorted(grant.agents.items())}
    return json_response(
        {
            "organization_id": to_public("org", caller.context.organization_id),
            "user_id": to_public("user", caller.context.user_id),
            "role": caller.context.role,
            "rights": _names(MAY.get(caller.context.role, frozenset())),
            "agents": agents,
            "has_credential": bool(caller.credential),
        }
    )


def _names(rights: frozenset[Right]) -> list[str]:
    return [right.name.lower() for right in Right if right in rights and right not in (Right.OPEN, Right.ANYBODY)]
