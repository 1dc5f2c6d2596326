"""Context windows of models, as providers' refusals have shown them; Loci's own."""

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.models.schemas import LEARNED_WINDOW
from gateway.rest.convert import to_rest
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import learned_window_service_pb2

router = APIRouter(prefix="/learned-windows", tags=["models"])


@router.get("")
@router.get("/", include_in_schema=False)
@returns(array(LEARNED_WINDOW))
async def list_windows(loci: Loci) -> Response:
    """Windows that are smaller than their models' descriptions say: model, tokens, learned_at."""
    request = learned_window_service_pb2.ListLearnedWindowsRequest()
    answer = await loci.peers.call(loci.peers.learned_windows.ListLearnedWindows, request)
    return json_response([to_rest(window) for window in answer.windows])


@router.delete("/{model:path}")
@returns(NULL)
async def forget_window(model: str, loci: Loci) -> Response:
    """Forgets what was learned of a model: the next turn uses its agent's own limit again."""
    request = learned_window_service_pb2.ForgetLearnedWindowRequest(model=model)
    await loci.peers.call(loci.peers.learned_windows.ForgetLearnedWindow, request)
    return json_response(None)
