"""A turn as it is asked for over HTTP: body, headers and caller become one TurnRequest."""

from dataclasses import replace

from starlette.requests import Request

from gateway.bodies.messages import TurnBody
from gateway.idempotency import retry_of
from gateway.views import View
from loci.agent.v1 import message_service_pb2
from services.common.ids import to_public, uuid7

TRACE_HEADER = b"x-loci-include-trace"
# The reference's name; its value is "true".
WEBSOCKET_HEADER = b"x-experimental-openai-responses-websocket"


async def turn_request(
    request: Request,
    body: TurnBody,
    agent_id: str,
    *,
    conversation_id: str = "",
    background: bool = False,
    callback_url: str | None = None,
) -> message_service_pb2.TurnRequest:
    """The turn, with a fresh run id. `conversation_id`: empty for the agent's default. Raises InvalidRequest."""
    options = body.options()
    options.include_trace = body.include_trace or (TRACE_HEADER, b"1") in request.scope["headers"]
    options.websocket = any(
        name == WEBSOCKET_HEADER and value.strip().lower() == b"true" for name, value in request.scope["headers"]
    )
    if callback_url:
        options.callback_url = callback_url
    view = View.of(body) if background else replace(View.of(body), tokens=True)
    if background or view != View():
        options.view_json = view.json
    return message_service_pb2.TurnRequest(
        agent_id=agent_id,
        conversation_id=conversation_id,
        run_id=to_public("run", uuid7()),
        messages=body.input_messages(),
        max_steps=body.max_steps,
        retry=await retry_of(request),
        options=options,
        on_busy=body.busy(),
        background=background,
    )
