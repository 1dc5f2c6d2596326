"""loci.llm.v1.ForwardService."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from loci.llm.v1 import forward_service_pb2 as wire
from loci.llm.v1 import forward_service_pb2_grpc
from services.common.context import current, time_remaining
from services.llm_gateway.calls.convert import optional_id
from services.llm_gateway.calls.metering import Account
from services.llm_gateway.forwards.addresses import Forward
from services.llm_gateway.forwards.service import End, Forwards, Head


def forward_of(message: wire.ForwardRequest) -> Forward:
    """The request; it is checked where it is handed on."""
    return Forward(
        provider_type=message.provider_type,
        method=message.method,
        path=message.path,
        query=message.query,
        headers=dict(message.headers),
        body=message.body,
        own_key=message.own_key,
    )


def forward_message(event: Head | bytes | End) -> wire.ForwardResponse:
    """One event of the answer."""
    match event:
        case Head():
            return wire.ForwardResponse(head=wire.ForwardHead(status=event.status, headers=event.headers))
        case End():
            return wire.ForwardResponse(end=wire.ForwardEnd(text=event.text))
        case _:
            return wire.ForwardResponse(chunk=event)


class ForwardServicer(forward_service_pb2_grpc.ForwardServiceServicer):
    """loci.llm.v1.ForwardService."""

    def __init__(self, forwards: Forwards) -> None:
        self._forwards = forwards

    async def Forward(self, request: wire.ForwardRequest, context: Any) -> AsyncGenerator[wire.ForwardResponse, None]:
        caller = current()
        account = Account(caller.organization_id, caller.run_id, agent_id=optional_id("agent", request.agent_id))
        async with aclosing(self._forwards.forward(forward_of(request), account, time_remaining())) as events:
            async for event in events:
                yield forward_message(event)
