"""A small service for the tests of servers and channels: one method of each kind, over plain bytes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.common.channel import make_channel
from services.common.context import CallContext, Signer, Verifier
from services.common.server import Server, make_server

NAME = "test.Echo"
KEY = Ed25519PrivateKey.generate()
SIGNER = Signer(KEY, "test")
VERIFIER = Verifier({"test": KEY.public_key()})
CALLER = CallContext(UUID(int=1), UUID(int=2), "user", ("echo",))

_numbers = itertools.count()

Answer = Callable[[bytes], Awaitable[bytes]]


async def repeat(request: bytes) -> bytes:
    """The default behaviour."""
    return request


@dataclass
class Echo:
    """`answer` is what the methods do; `ended` is set when a streaming handler is over, however it ended."""

    answer: Answer = repeat
    pause: float = 0.0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def Say(self, request: bytes, context: Any) -> bytes:
        """Unary."""
        return await self.answer(request)

    async def StreamSay(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        """Answers every byte on its own."""
        try:
            for byte in request:
                yield await self.answer(bytes([byte]))
                await asyncio.sleep(self.pause)
        finally:
            self.ended.set()

    async def UploadSay(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        """Answers all requests joined."""
        return await self.answer(b"".join([request async for request in requests]))

    async def StreamBoth(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        """Answers each request."""
        async for request in requests:
            yield await self.answer(request)


def add_echo(servicer: Echo, server: Any) -> None:
    """Registers the servicer, like a generated `add_XServicer_to_server`."""
    handlers: dict[str, Any] = {
        "Say": grpc.unary_unary_rpc_method_handler(servicer.Say),
        "StreamSay": grpc.unary_stream_rpc_method_handler(servicer.StreamSay),
        "UploadSay": grpc.stream_unary_rpc_method_handler(servicer.UploadSay),
        "StreamBoth": grpc.stream_stream_rpc_method_handler(servicer.StreamBoth),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))
    server.add_registered_method_handlers(NAME, handlers)


class EchoStub:
    """A stub like a generated one."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        kinds: Any = channel
        self.Say = kinds.unary_unary(f"/{NAME}/Say", _registered_method=True)
        self.StreamSay = kinds.unary_stream(f"/{NAME}/StreamSay", _registered_method=True)
        self.UploadSay = kinds.stream_unary(f"/{NAME}/UploadSay", _registered_method=True)
        self.StreamBoth = kinds.stream_stream(f"/{NAME}/StreamBoth", _registered_method=True)


def echo_server(address: str, servicer: Echo | None = None, **options: Any) -> Server:
    """An echo server, not started; `options` go to make_server."""
    given: dict[str, Any] = {"audience": "echo", "verifier": VERIFIER, "service_names": [NAME], **options}
    return make_server(address, servicers=[(add_echo, servicer or Echo())], **given)


@asynccontextmanager
async def echo(
    folder: Path, servicer: Echo | None = None, **options: Any
) -> AsyncIterator[tuple[EchoStub, grpc.aio.Channel]]:
    """A started echo server on a Unix socket in `folder`, and a stub and channel to it."""
    # Each its own path: gRPC removes a stopped server's socket a moment later, whoever listens there by then.
    address = f"unix://{folder}/{next(_numbers)}.sock"
    server = echo_server(address, servicer, **options)
    await server.start()
    channel = make_channel(address)
    try:
        yield EchoStub(channel), channel
    finally:
        await channel.close()
        await server.stop(0)
