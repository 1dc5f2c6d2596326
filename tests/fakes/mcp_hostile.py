"""MCP servers that do it wrong, each in its own way: the way is the path. Hand-written, since no SDK would do it."""

import asyncio
import gzip
import json
from typing import Any

from tests.fakes.http import Exchange, Request

_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream"}
_SCHEMA = {"type": "object", "properties": {}}
BAD_TOOLS: list[Any] = [
    {"name": "good", "inputSchema": _SCHEMA},
    {"name": "null schema", "inputSchema": None},
    {"name": "a list", "inputSchema": ["a"]},
    {"name": "no bound", "inputSchema": {"type": "object", "properties": {"a": {"minimum": "nonsense"}}}},
    {"name": "elsewhere", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://169.254.169.254/"}}}},
    {"inputSchema": _SCHEMA},
    "a text",
    {"name": "also/good", "inputSchema": _SCHEMA},
]


def _deep(depth: int) -> Any:
    schema: Any = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


class HostileMcp:
    """Answers `initialize` well unless the way says otherwise. `calls`: how often a tool was really called."""

    def __init__(self) -> None:
        self.calls = 0
        self.sessions = 0
        self.requests: list[Request] = []

    async def __call__(self, request: Request, exchange: Exchange) -> None:
        self.requests.append(request)
        way = request.path.strip("/")
        if request.method != "POST":
            await exchange.send(405, {}, b"")
            return
        message = json.loads(request.body)
        if "id" not in message:
            await exchange.send(202, {}, b"")
            return
        handle = getattr(self, f"_{way.replace('-', '_')}", None)
        if handle is None:
            await exchange.send(404, {}, b"")
        elif not await handle(message, exchange, request):
            await self._answer(message, exchange)

    async def _answer(self, message: Any, exchange: Exchange, result: Any = None, **headers: str) -> None:
        if result is None and message["method"] == "initialize":
            self.sessions += 1
            headers["mcp-session-id"] = f"session-{self.sessions}"
            info = {"name": "hostile", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        if result is None:
            result = {"tools": [{"name": "act", "inputSchema": _SCHEMA}]} if message["method"] == "tools/list" else {}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        await exchange.send(200, {**_JSON, **headers}, body)

    async def _well(self, message: Any, exchange: Exchange, request: Request) -> bool:
        return False

    async def _late(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] == "initialize":
            await asyncio.sleep(2.5)
        return False

    async def _hang(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.wait_gone()
        return True

    async def _hang_later(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] == "initialize":
            return False
        await exchange.wait_gone()
        return True

    async def _dribble(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.start(200, _JSON)
        while True:
            await exchange.write(b" ")
            await asyncio.sleep(0.05)

    async def _html(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.send(200, {"content-type": "text/html"}, b"<html>welcome</html>")
        return True

    async def _garbage(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.send(200, _JSON, b'{"jsonrpc": "2.0", "id"')
        return True

    async def _not_http(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.write_raw(b"SSH-2.0-OpenSSH_9.2\r\n")
        exchange.cut()
        return True

    async def _error(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.send(503, {"content-type": "text/plain"}, b"out of order")
        return True

    async def _huge(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] == "initialize":
            return False
        await exchange.start(200, _JSON)
        for _ in range(50):
            await exchange.write(b" " * 1024 * 1024)
        await exchange.end()
        return True

    async def _bomb(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] == "initialize":
            return False
        await exchange.send(200, {**_JSON, "content-encoding": "gzip"}, gzip.compress(b" " * 64 * 1024 * 1024))
        return True

    async def _flood(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] == "initialize":
            return False
        await exchange.start(200, _EVENTS)
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "spam"}}
        event = b"event: message\ndata: " + json.dumps(note).encode() + b"\n\n"
        while True:
            await exchange.write(event * 500)
            await asyncio.sleep(0)

    async def _pages(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] != "tools/list":
            return False
        number = int((message.get("params") or {}).get("cursor") or 0)
        tools = [{"name": f"tool{number}_{index}", "inputSchema": _SCHEMA} for index in range(100)]
        await self._answer(message, exchange, {"tools": tools, "nextCursor": str(number + 1)})
        return True

    async def _bad_tools(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] != "tools/list":
            return False
        deep = {"name": "deep", "inputSchema": _deep(40)}
        await self._answer(message, exchange, {"tools": [*BAD_TOOLS, deep]})
        return True

    async def _too_deep(self, message: Any, exchange: Exchange, request: Request) -> bool:
        if message["method"] != "tools/list":
            return False
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"tools": ["DEEP"]}})
        await exchange.send(200, _JSON, text.replace('"DEEP"', "[" * 100_000 + "]" * 100_000).encode())
        return True

    async def _forgetful(self, message: Any, exchange: Exchange, request: Request) -> bool:
        """Every session is good for one request after the greeting."""
        if message["method"] == "initialize":
            return False
        if request.headers.get("mcp-session-id") != f"session-{self.sessions}" or self._spent == self.sessions:
            await exchange.send(404, {}, b"")
            return True
        self._spent = self.sessions
        self.calls += message["method"] == "tools/call"
        return False

    _spent = 0

    async def _drop(self, message: Any, exchange: Exchange, request: Request) -> bool:
        """Acts, and drops the connection instead of answering."""
        if message["method"] == "initialize":
            return False
        self.calls += message["method"] == "tools/call"
        exchange.cut()
        return True

    async def _asking(self, message: Any, exchange: Exchange, request: Request) -> bool:
        """Asks the user instead of answering, as the protocol of 2026-07-28 has it."""
        if message["method"] not in ("tools/call", "resources/read"):
            return False
        question = {"method": "elicitation/create", "params": {"message": "Which colour?", "requestedSchema": {}}}
        await self._answer(message, exchange, {"resultType": "input_required", "inputRequests": {"1": question}})
        return True

    async def _redirect(self, message: Any, exchange: Exchange, request: Request) -> bool:
        await exchange.send(307, {"location": "http://169.254.169.254/latest/meta-data/"}, b"")
        return True
