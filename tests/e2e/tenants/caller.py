"""Calls of services in a tenant's name, as the gateway and the services make them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from cli.home import Home
from cli.secrets import SIGNING_KEY
from services.common.context import METADATA_KEY, CallContext, Signer
from services.common.ids import from_public
from services.common.keys import key_id, load_private_key
from tests.e2e.stack import Stack
from tests.e2e.tenants.party import Party
from tests.e2e.tenants.rpcs import SERVICES, Rpc

# A stream that says nothing within this time has let its caller in.
_SECONDS = 3.0


@dataclass(frozen=True)
class Answer:
    """What a call came to: the name of its status, and all that it said."""

    status: str
    text: str


class Caller:
    """One tenant's admin, before every service."""

    def __init__(self, channels: dict[str, grpc.Channel], token: bytes) -> None:
        self._channels = channels
        self._metadata = ((METADATA_KEY, token),)

    def call(self, rpc: Rpc, *requests: Any) -> Answer:
        """Makes a call with a request, or a stream of some; of a stream the first answer is enough."""
        make: Any = getattr(
            self._channels[rpc.service], _KINDS[rpc.method.client_streaming, rpc.method.server_streaming]
        )
        stub = make(rpc.path, type(requests[0]).SerializeToString, rpc.response_class.FromString)
        sent = iter(requests) if rpc.method.client_streaming else requests[0]
        try:
            answer = stub(sent, metadata=self._metadata, timeout=_SECONDS)
            if rpc.method.server_streaming:
                first = next(iter(answer), "")
                answer.cancel()
                return Answer("OK", str(first))
            return Answer("OK", str(answer))
        except grpc.RpcError as error:
            return _refusal(error)


def _refusal(error: Any) -> Answer:
    return Answer(error.code().name, error.details())


_KINDS = {
    (False, False): "unary_unary",
    (False, True): "unary_stream",
    (True, False): "stream_unary",
    (True, True): "stream_stream",
}


@contextmanager
def calling(stack: Stack, party: Party) -> Iterator[Caller]:
    """A caller in the name of a tenant."""
    home = Home(stack.home)
    key = load_private_key((home.secrets / SIGNING_KEY).read_text())
    user_id = from_public("user", party.has["my_user_id"])
    organization_id = from_public("org", party.organization_id)
    context = CallContext(organization_id, user_id, "admin", tuple(SERVICES.values()))
    channels = {name: grpc.insecure_channel(f"unix://{home.socket(name)}") for name in SERVICES.values()}
    yield Caller(channels, Signer(key, key_id(key.public_key())).sign(context))
    for channel in channels.values():
        channel.close()
