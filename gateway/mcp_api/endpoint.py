"""/mcp: Loci's agents for clients of the Model Context Protocol, behind the gateway's own authentication."""

import asyncio
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from gateway.rest.services import Services
from services.common.lazy_imports import import_lazily

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class McpEndpoint:
    """An ASGI application; what it stands on is imported and started at the first request."""

    def __init__(self, loci: Services) -> None:
        self._loci = loci
        self._starting = asyncio.Lock()
        self._over = asyncio.Event()
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """Ends what is under way."""
        self._over.set()
        if self._running:
            await self._running

    async def _started(self) -> "StreamableHTTPSessionManager":
        async with self._starting:
            if self._manager is None:
                await import_lazily("gateway.mcp_api.agents")
                from gateway.mcp_api import agents  # noqa: PLC0415 - 36 MB that few gateways need

                manager = agents.manager(self._loci)
                ready = asyncio.Event()
                self._running = asyncio.create_task(self._run(manager, ready))
                await ready.wait()
                self._manager = manager
            return self._manager

    async def _run(self, manager: "StreamableHTTPSessionManager", ready: asyncio.Event) -> None:
        # In a task of its own, since it is begun and ended in different ones.
        async with manager.run():
            ready.set()
            await self._over.wait()
