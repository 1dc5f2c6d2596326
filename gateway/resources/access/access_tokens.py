"""Client-side access tokens: for browsers, restricted to some agents, to one page, and in time."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL
from gateway.resources.access.requests import CreateToken
from gateway.resources.access.schemas import TOKEN, TOKENS
from gateway.rest.convert import Rest, moment
from gateway.rest.paging import page_request
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import access_service_pb2 as wire
from services.common.errors import InvalidArgument
from services.common.ids import from_public, to_public

router = APIRouter(prefix="/client-side-access-tokens", tags=["access tokens"])

_PREFIX = "loci-"
_ID_LENGTH = len("ct-") + 36
_PER_PAGE = 10
_MOST_OFFSET = 2**31 - 1


@router.post("")
@returns(TOKEN)
async def create_token(body: CreateToken, loci: Loci) -> Response:
    """Creates a token for a page. Its secret is returned once."""
    created = await loci.peers.call(loci.peers.access.CreateClientToken, body.request())
    return json_response(_rest(created.token) | {"token": created.secret})


@router.get("")
@returns(TOKENS)
async def list_tokens(
    loci: Loci,
    agent_id: Annotated[str | None, Query(alias="agentId", description="Only those for this agent.")] = None,
    limit: Annotated[int, Query(ge=1)] = _PER_PAGE,
    offset: Annotated[int, Query(ge=0, le=_MOST_OFFSET)] = 0,
) -> Response:
    """Returns a page of the tokens that have not expired, newest first, without their secrets."""
    request = wire.ListClientTokensRequest(page=page_request(_PER_PAGE, limit=limit), offset=offset, agent_id=agent_id)
    response = await loci.peers.call(loci.peers.access.ListClientTokens, request)
    return json_response({"hasNextPage": response.has_next_page, "tokens": [_rest(token) for token in response.tokens]})


@router.delete("/{token}")
@returns(NULL)
async def delete_token(token: str, loci: Loci) -> Response:
    """Revokes a token, by its id or its secret. It is refused everywhere within ten seconds."""
    await loci.peers.call(loci.peers.access.DeleteClientToken, wire.DeleteClientTokenRequest(token_id=_id(token)))
    return json_response(None)


def _rest(token: wire.ClientToken) -> Rest:
    policy = [{"type": "agent", "id": each.agent_id, "access": list(each.access)} for each in token.policy]
    return {
        "token": f"{_PREFIX}{token.id}",
        "hostname": token.hostname,
        "expiresAt": moment(token.expires_at),
        "policy": {"version": "1", "data": policy},
    }


def _id(token: str) -> str:
    token_id, rest = token.removeprefix(_PREFIX)[:_ID_LENGTH], token.removeprefix(_PREFIX)[_ID_LENGTH:]
    try:
        if token.startswith(_PREFIX) and rest[:1] in ("", "-"):
            return to_public("ct", from_public("ct", token_id))
    except InvalidArgument:
        pass
    raise InvalidRequest("this is no token: expected `loci-ct-<uuid>`, or all that it says", "path", "token")
