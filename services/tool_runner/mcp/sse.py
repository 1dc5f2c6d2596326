"""The older HTTP transport: a stream of events for what the server says, and a POST for each message to it.

The SDK's `sse_client` reads no event above 1 MiB, whatever is asked of it; this one reads what other transports do. It
follows redirects as the SDK does: within the server's origin.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.abc import TaskStatus
from mcp.shared._httpx_utils import request_within_origin, sse_within_origin
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from services.tool_runner.mcp.http import MOST_EVENT
from services.tool_runner.mcp.pending import PendingRequests
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.session import Streams
from services.tool_runner.mcp.throttle import too_much

_JSON = {"content-type": "application/json"}
_log = logging.getLogger(__name__)


@asynccontextmanager
async def sse_streams(url: str, client: httpx2.AsyncClient, watch: PendingRequests) -> AsyncIterator[Streams]:
    """Connects, and yields the two streams of a session. What ends the stream of events goes to `watch`."""
    async with sse_within_origin(client, url, max_event_size=MOST_EVENT) as events:
        events.response.raise_for_status()
        received, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, sending = anyio.create_memory_object_stream[SessionMessage](0)
        async with received, read, write, sending, anyio.create_task_group() as group:
            endpoint: str = await group.start(_hear, url, events, received, watch)
            group.start_soon(_say, client, endpoint, sending, watch)
            try:
                yield read, write
            finally:
                group.cancel_scope.cancel()


async def _hear(
    url: str,
    events: httpx2.EventSource,
    received: Any,
    watch: PendingRequests,
    *,
    task_status: TaskStatus[str],
) -> None:
    """Passes on what the server says; first of all, the address for messages to it."""
    named = False
    async with received:
        try:
            async for event in events:
                if event.event == "endpoint" and not named:
                    named = True
                    task_status.started(_endpoint(url, event.data))
                elif event.event == "message" and event.data:
                    await _pass_on(event.data, received)
        except httpx2.SSEError as error:
            _log.info("a stream of events ended", extra={"problem": str(error)})
            watch.end(too_much(MOST_EVENT))
        except httpx2.TransportError:
            pass  # the session ends, and says that the connection was lost
    if not named:
        raise McpProblem(Kind.FAILED, "the MCP server named no address for messages: it is not one of this transport")


def _endpoint(url: str, named: str) -> str:
    endpoint = urljoin(url, named)
    if urlsplit(endpoint)[:2] != urlsplit(url)[:2]:
        raise McpProblem(Kind.FAILED, "the MCP server wants messages at another origin, which gets none")
    return endpoint


async def _pass_on(text: str, received: Any) -> None:
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        await received.send(error)
        return
    await received.send(SessionMessage(message))


async def _say(client: httpx2.AsyncClient, endpoint: str, sending: Any, watch: PendingRequests) -> None:
    async with sending:
        async for message in sending:
            body = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            # What fails below HTTP goes to whoever waits for an answer: see `http.OutwardMcp`.
            answer = await request_within_origin(client, "POST", endpoint, content=body, headers=_JSON)
            if not answer.is_success:
                text = f"the MCP server answered HTTP {answer.status_code} to a message"
                watch.fail(body, McpProblem(Kind.FAILED, text, arrived=True))
