"""A turn as it is asked for over HTTP: body, headers and caller become one TurnRequest."""

from collections.abc import Sequence
from dataclasses import replace

from starlette.requests import Request

from gateway.access.run_tokens import check_approvals, check_members
from gateway.resources.messages.requests import TurnFields
from gateway.turns.idempotency import retry_of
from gateway.turns.views import View
from loci.agent.v1 import message_service_pb2
from services.common.ids import to_public, uuid7

TRACE_HEADER = b"x-loci-include-trace"
# The reference's name; its value is "true".
WEBSOCKET_HEADER = b"x-experimental-openai-responses-websocket"


async def turn_request(
    request: Request,
    body: TurnFields,
    agent_id: str,
    *,
    conversation_id: str = "",
    background: bool = False,
    locks: bool = False,
    callback_url: str | None = None,
) -> message_service_pb2.TurnRequest:
    """Returns the turn, with a fresh run id.

    `conversation_id`: empty for the agent's default. `locks`: it wants the conversation for itself. Raises
    InvalidRequest.
    """
    turn = build_turn(
        body,
        agent_id,
        headers=request.scope["headers"],
        retry=await retry_of(request),
        conversation_id=conversation_id,
        background=background,
    )
    turn.locks = locks
    if callback_url:
        check_members(("callback_url",))
        turn.options.callback_url = callback_url
    return turn


def build_turn(
    body: TurnFields,
    agent_id: str,
    *,
    headers: Sequence[tuple[bytes, bytes]],
    retry: message_service_pb2.Retry,
    conversation_id: str = "",
    background: bool = False,
) -> message_service_pb2.TurnRequest:
    """Returns the turn that `body` asks for; `headers`: of the request or the socket that it came by. Raises
    InvalidRequest.
    """
    options = body.options()
    options.include_trace = body.include_trace or (TRACE_HEADER, b"1") in headers
    options.websocket = any(name == WEBSOCKET_HEADER and value.strip().lower() == b"true" for name, value in headers)
    messages = body.input_messages()
    check_approvals(messages)
    view = View.of(body) if background else replace(View.of(body), tokens=True)
    if background or view != View():
        options.view_json = view.json
    return message_service_pb2.TurnRequest(
        agent_id=agent_id,
        conversation_id=conversation_id,
        run_id=to_public("run", uuid7()),
        messages=messages,
        max_steps=body.max_steps,
        retry=retry,
        options=options,
        on_busy=body.busy(),
        background=background,
    )
