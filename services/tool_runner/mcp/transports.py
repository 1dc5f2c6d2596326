"""The SDK's transports over our own ways out: HTTP to checked addresses, programs in sandboxes."""

import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter
from pydantic import ValidationError

from services.common.core.private_hosts import Private
from services.tool_runner.core.ports import Process
from services.tool_runner.mcp.http import MOST_EVENT, MOST_STREAM, OutwardMcp, mcp_client
from services.tool_runner.mcp.pending import PendingRequests
from services.tool_runner.mcp.protocol.bearer import Bearer
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.protocol.last_words import ended_text
from services.tool_runner.mcp.session import Dial, Streams
from services.tool_runner.mcp.sse import sse_streams
from services.tool_runner.mcp.throttle import Throttle, too_much
from services.tool_runner.mcp_servers.model import Http
from services.tool_runner.mcp_servers.model import Kind as ServerKind

_MOST_NOISE = 200


def http_dial(
    server: Http,
    bearer: Bearer,
    *,
    allow_private: Private,
    connect: float,
    execute: float,
    trusted: ssl.SSLContext | None = None,
) -> Dial:
    """Dials a server behind a URL; seconds."""
    older = server.kind is ServerKind.SSE

    def dial(watch: PendingRequests) -> AbstractAsyncContextManager[Streams]:
        outward = OutwardMcp(
            watch, bearer, allow_private=allow_private, seconds=execute, reads_events=older, trusted=trusted
        )
        return _sse(server, outward, connect, watch) if older else _streamable(server, outward, connect)

    return dial


@asynccontextmanager
async def _streamable(server: Http, outward: OutwardMcp, connect: float) -> AsyncIterator[Streams]:
    async with (
        mcp_client(outward, server.all_headers(), connect) as client,
        # To end the session costs a request that nobody waits for; servers forget idle ones.
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MOST_EVENT) as streams,
    ):
        yield streams


@asynccontextmanager
async def _sse(server: Http, outward: OutwardMcp, connect: float, watch: PendingRequests) -> AsyncIterator[Streams]:
    async with (
        mcp_client(outward, server.all_headers(), connect) as client,
        sse_streams(server.url, client, watch) as streams,
    ):
        yield streams


def process_dial(start: AbstractAsyncContextManager[Process]) -> Dial:
    """Dials a program: one JSON message a line on its stdin and stdout."""

    @asynccontextmanager
    async def dial(watch: PendingRequests) -> AsyncIterator[Streams]:
        async with start as process:
            received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
            write, sending = anyio.create_memory_object_stream[SessionMessage](0)
            async with received, read, write, sending, anyio.create_task_group() as group:
                group.start_soon(_hear, process, received, watch)
                group.start_soon(_say, process, sending, watch)
                try:
                    yield read, write
                finally:
                    group.cancel_scope.cancel()

    return dial


async def _hear(process: Process, received: Any, watch: PendingRequests) -> None:
    """Passes on what the program writes, until it ends, but for lines that are no message of the protocol."""
    throttle, rest = Throttle(MOST_STREAM), bytearray()
    async with received:
        try:
            while data := await process.read():
                await throttle.wait_for_bytes(data)
                rest += data
                if b"\n" in data:
                    *lines, last = bytes(rest).split(b"\n")
                    rest = bytearray(last)
                    for line in lines:
                        if message := _message(line):
                            await received.send(SessionMessage(message))
                        elif not watch.noise:
                            watch.noise = line[:_MOST_NOISE].decode(errors="replace").strip()
                if len(rest) > MOST_EVENT:
                    raise too_much(MOST_EVENT)
        except McpProblem as problem:
            watch.end(problem)
        else:
            watch.end(_ended(process))


def _message(line: bytes) -> JSONRPCMessage | None:
    """Returns the message; None for a line that is none: programs print their banners to stdout."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return None


async def _say(process: Process, sending: Any, watch: PendingRequests) -> None:
    async with sending:
        async for message in sending:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            try:
                await process.write(line + b"\n")
            except ConnectionError:
                watch.fail(line, _ended(process))


def _ended(process: Process) -> McpProblem:
    return McpProblem(Kind.UNREACHABLE, ended_text(process.errors), arrived=True, fresh=True)
