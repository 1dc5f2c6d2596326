"""The secret of the caller's tenant for callbacks; Loci's own."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.resources.access.schemas import WEBHOOK_SECRET
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import access_service_pb2 as wire

router = APIRouter(tags=["access"])


@router.get("/webhook-secret")
@returns(WEBHOOK_SECRET)
async def retrieve_webhook_secret(loci: Loci) -> Response:
    """Returns what receivers of the tenant's callbacks check signatures with. For admins."""
    answer = await loci.peers.call(loci.peers.access.GetWebhookSecret, wire.GetWebhookSecretRequest())
    return json_response({"secret": answer.secret})
