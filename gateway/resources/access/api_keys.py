"""API keys of the caller's tenant, for admins; Loci's own."""

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from gateway.errors.invalid import EXAMPLE_UUID
from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.access.requests import CreateApiKey
from gateway.resources.access.schemas import API_KEY, NEW_API_KEY
from gateway.rest.convert import Rest, to_rest
from gateway.rest.paging import MOST_PER_PAGE
from gateway.rest.params import checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import access_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest

router = APIRouter(prefix="/api-keys", tags=["api keys"])

KeyId = Annotated[str, Path(examples=[f"key-{EXAMPLE_UUID}"]), checked_id("key")]


@router.post("")
@returns(NEW_API_KEY)
async def create_key(body: CreateApiKey, loci: Loci) -> Response:
    """Creates a key. `key` is its secret, which is returned once."""
    created = await loci.peers.call(loci.peers.access.CreateApiKey, wire.CreateApiKeyRequest(key=body.message()))
    return json_response(to_rest(created.key) | {"key": created.secret})


@router.get("")
@returns(array(API_KEY))
async def list_keys(loci: Loci) -> Response:
    """Returns all keys, oldest first, without their secrets."""
    keys: list[Rest] = []
    request = wire.ListApiKeysRequest(page=PageRequest(page_size=MOST_PER_PAGE))
    while True:
        response = await loci.peers.call(loci.peers.access.ListApiKeys, request)
        keys += map(to_rest, response.keys)
        if not response.next_page_token:
            return json_response(keys)
        request.page.page_token = response.next_page_token


@router.delete("/{key_id}")
@returns(NULL)
async def delete_key(key_id: KeyId, loci: Loci) -> Response:
    """Revokes a key. It is refused everywhere within ten seconds."""
    await loci.peers.call(loci.peers.access.DeleteApiKey, wire.DeleteApiKeyRequest(key_id=key_id))
    return json_response(None)
