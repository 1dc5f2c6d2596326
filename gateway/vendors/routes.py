"""Vendors' own APIs: a request goes to the vendor as it is, and its answer comes back so.

Messages that name an agent are sent with its memory, and what was said is stored with its messages.
"""

import asyncio
import logging

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.rest.services import Loci, Services
from gateway.vendors import memory
from gateway.vendors.keys import own_key
from gateway.vendors.relay import Ended, Relay
from loci.agent.v1 import message_pb2, message_service_pb2, model_call_service_pb2
from loci.llm.v1 import forward_service_pb2
from services.common.errors import InvalidArgument, LociError
from services.common.grpc_limits import MAX_CONTENT_BYTES
from services.common.ids import from_public, uuid7

logger = logging.getLogger(__name__)

router = APIRouter()

AGENT_HEADER = "x-letta-agent-id"
_ANY = ["GET", "POST", "PUT", "PATCH", "DELETE"]
_MESSAGES = "messages"
_SENT = ("accept", "anthropic-beta", "anthropic-version", "content-type")


@router.api_route("/anthropic/v1/messages", methods=_ANY, include_in_schema=False)
@router.api_route("/anthropic/v1/{endpoint:path}", methods=_ANY, include_in_schema=False)
async def pass_on_to_anthropic(request: Request, loci: Loci, endpoint: str = _MESSAGES) -> Response:
    """Anthropic's API."""
    return await _forward("anthropic", endpoint, request, loci)


@router.api_route("/zai/v1/messages", methods=_ANY, include_in_schema=False)
@router.api_route("/zai/v1/{endpoint:path}", methods=_ANY, include_in_schema=False)
async def pass_on_to_zai(request: Request, loci: Loci, endpoint: str = _MESSAGES) -> Response:
    """Z.ai's, in Anthropic's dialect."""
    return await _forward("zai", endpoint, request, loci)


async def _forward(vendor: str, endpoint: str, request: Request, loci: Services) -> Response:
    rpc_request = forward_service_pb2.ForwardRequest(
        provider_type=vendor,
        method=request.method,
        path=f"v1/{endpoint}",
        query=request.url.query,
        headers={name: value for name in _SENT if (value := request.headers.get(name))},
        body=await request.body(),
        own_key=own_key(vendor, dict(request.scope["headers"]), loci.settings.password),
    )
    ended: Ended | None = None
    agent_id = request.headers.get(AGENT_HEADER, "")
    if agent_id and (request.method, endpoint) == ("POST", _MESSAGES):
        ended = await _add_memory(rpc_request, agent_id, loci)
    if rpc_request.ByteSize() > MAX_CONTENT_BYTES:
        most = MAX_CONTENT_BYTES // 1024**2
        raise HTTPException(413, f"the request is larger than {most} MiB, with what it is sent")
    return Relay(loci.peers, rpc_request, ended)


async def _add_memory(forward: forward_service_pb2.ForwardRequest, agent_id: str, loci: Services) -> Ended:
    """Puts the agent's memory into the request; what stores the exchange."""
    try:
        from_public("agent", agent_id)
    except InvalidArgument as error:
        raise InvalidRequest(f"{AGENT_HEADER}: {error.message}", "header", AGENT_HEADER) from None
    request = memory.request_of(forward.body)
    window = model_call_service_pb2.GetContextWindowRequest(agent_id=agent_id)
    response = await loci.peers.call(loci.peers.model_calls.GetContextWindow, window)
    forward.agent_id, forward.body = agent_id, memory.with_memory(request, response.core_memory)

    async def store(reply: str) -> None:
        if reply and (messages := memory.exchange(request, reply)):
            # A client may leave at the last event, which is when it has all that it wants.
            await asyncio.shield(asyncio.create_task(_store(agent_id, messages, loci)))

    return store


async def _store(agent_id: str, messages: list[message_pb2.InputMessage], loci: Services) -> None:
    request = message_service_pb2.CaptureMessagesRequest(agent_id=agent_id, messages=messages, request_id=str(uuid7()))
    try:
        await loci.peers.call(loci.peers.messages.CaptureMessages, request)
    except LociError as error:
        # The client has its answer, and nothing else could be told to it.
        logger.warning("an exchange with a vendor is not stored with %s: %s", agent_id, error.message)
