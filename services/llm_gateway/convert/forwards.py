"""Forwarded requests and their answers, from and to protobuf."""

from loci.llm.v1 import forward_service_pb2 as wire
from services.llm_gateway.forwarding.addresses import Forward
from services.llm_gateway.forwarding.forwards import End, Head


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
