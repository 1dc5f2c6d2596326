"""A real MCP server of the official SDK, in this process or as a program: `python -m tests.fakes.mcp_server`.

Its tools: add, echo, fail, picture, slow (progress and logs), environment. A test may change `tools`, and require a
bearer token; over HTTP it serves the current transport at /mcp and the older one at /sse.
"""

import asyncio
import base64
import contextlib
import os
import socket
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from threading import Thread
from typing import Any, TypeVar

import mcp_types as types
import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.types import ASGIApp, Receive, Scope, Send

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(16)).decode()
_TEXT = {"type": "string"}
_Server = TypeVar("_Server")


def _tool(name: str, description: str, /, **properties: Any) -> types.Tool:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return types.Tool(name=name, description=description, input_schema=schema)


TOOLS = (
    _tool("add", "Add two numbers.", a={"type": "integer"}, b={"type": "integer"}),
    _tool("echo", "Say it again.", text=_TEXT),
    _tool("fail", "Fail, and say why.", why=_TEXT),
    _tool("picture", "Give a picture."),
    _tool("slow", "Take a while.", seconds={"type": "number"}),
    _tool("environment", "A variable of the environment.", name=_TEXT),
)


class McpServer:
    """An MCP server that records requests in `calls`. `token`: required of requests, "" for none."""

    def __init__(self, tools: tuple[types.Tool, ...] = TOOLS) -> None:
        self.tools = list(tools)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.token = ""
        # Who says which tokens are good, instead of `token`.
        self.allows: Callable[[str], bool] | None = None
        self.challenge = "Bearer"
        self.port = 0
        self.server: Server[Any] = Server(
            "test",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=self._resources,
            on_read_resource=self._read,
            on_list_prompts=self._prompts,
            on_get_prompt=self._prompt,
        )
        self._manager: StreamableHTTPSessionManager | None = None
        self._sse = SseServerTransport("/messages/")

    @property
    def url(self) -> str:
        """The URL of the current transport."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def sse_url(self) -> str:
        """The URL of the older transport."""
        return f"http://127.0.0.1:{self.port}/sse"

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(self.tools))

    async def _resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        """Of two pages."""
        number = int(params.cursor or 1) if params else 1
        one = types.Resource(uri=f"test://note/{number}", name=f"note {number}", mime_type="text/plain")
        return types.ListResourcesResult(resources=[one], next_cursor="2" if number == 1 else None)

    async def _read(self, context: Any, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = f"what {params.uri} says, by {self.headers[-1].get('x-key', '')}"
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text)])

    async def _prompts(self, context: Any, params: Any) -> types.ListPromptsResult:
        argument = types.PromptArgument(name="who", required=True)
        return types.ListPromptsResult(prompts=[types.Prompt(name="greet", arguments=[argument])])

    async def _prompt(self, context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        content = types.TextContent(type="text", text=f"Greet {(params.arguments or {})['who']}.")
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        given = params.arguments or {}
        self.calls.append((params.name, given))
        match params.name:
            case "add":
                total = given["a"] + given["b"]
                return _result(str(total), structured={"result": total})
            case "echo":
                return _result(given["text"])
            case "fail":
                return _result(given["why"], is_error=True)
            case "picture":
                image = types.ImageContent(type="image", data=PICTURE, mime_type="image/png")
                return types.CallToolResult(content=[types.TextContent(type="text", text="here"), image])
            case "slow":
                return await self._slow(context, given["seconds"])
            case "change":  # what it offers, and says so
                self.tools = [tool for tool in self.tools if tool.name != given["without"]]
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", MCPDeprecationWarning)
                    await context.session.send_tool_list_changed()
                return _result("changed")
            case "ask":  # the user, through the client
                wanted: dict[str, Any] = {"type": "object", "properties": {"answer": _TEXT}}
                answer = await context.session.elicit_form(given["question"], wanted, context.request_id)
                return _result(answer.action)
            case "environment":
                return _result(os.environ.get(given["name"], ""))
        return _result("no such tool", is_error=True)

    async def _slow(self, context: Any, seconds: float) -> types.CallToolResult:
        await context.session.report_progress(1, 2, "half")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)  # servers of today send them
            await context.session.send_log_message("info", "working", related_request_id=context.request_id)
        await asyncio.sleep(seconds)
        return _result("done")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.headers.append(headers)
        if not self._is_allowed(headers.get("authorization", "").removeprefix("Bearer ")):
            await _refuse(send, self.challenge)
        elif scope["path"] == "/mcp":
            assert self._manager
            await self._manager.handle_request(scope, receive, send)
        elif scope["path"] == "/sse":
            async with self._sse.connect_sse(scope, receive, send) as (read, write):
                await self.server.run(read, write, self.server.create_initialization_options())
        else:
            await self._sse.handle_post_message({**scope, "root_path": ""}, receive, send)

    def _is_allowed(self, token: str) -> bool:
        return self.allows(token) if self.allows else not self.token or token == self.token

    def in_thread(self, port: int = 0) -> AbstractContextManager["McpServer"]:
        """Serves as `serving` does, for tests that are no coroutines."""
        return threaded(self.serving(port))

    @asynccontextmanager
    async def serving(
        self, port: int = 0, app: "Callable[[McpServer], ASGIApp] | None" = None
    ) -> AsyncIterator["McpServer"]:
        """On loopback, until the block is left; `app` may stand around it."""
        manager = self._manager = StreamableHTTPSessionManager(app=self.server)
        ready, over = asyncio.Event(), asyncio.Event()

        async def run() -> None:
            # Of its own: what fails in a test is not to be wrapped in this one's group.
            async with manager.run():
                ready.set()
                await over.wait()

        running = asyncio.create_task(run())
        await ready.wait()
        try:
            async with served(app(self) if app else self, port) as bound:
                self.port = bound
                yield self
        finally:
            over.set()
            await running


def _result(text: str, *, structured: dict[str, Any] | None = None, is_error: bool = False) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=structured, is_error=is_error)


async def _refuse(send: Send, challenge: str) -> None:
    headers = [(b"www-authenticate", challenge.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


@contextmanager
def threaded(serving: AbstractAsyncContextManager[_Server]) -> Iterator[_Server]:
    """What serves in a loop serves in a thread with one, until the block is left."""
    started: Future[tuple[_Server, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        try:
            async with serving as server:
                over = asyncio.Event()
                started.set_result((server, asyncio.get_running_loop(), over))
                await over.wait()
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        server, loop, over = started.result(30)
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(over.set)
    finally:
        thread.join()


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@asynccontextmanager
async def served(app: ASGIApp, port: int = 0) -> AsyncIterator[int]:
    """An application on a port of loopback, given as the value; it ends at once, with what it was doing."""
    bound = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none", timeout_graceful_shutdown=0)
    server = _Uvicorn(config)
    task = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        while not server.started:
            await asyncio.sleep(0.01)
        yield bound.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        for connection in list(server.server_state.connections):
            if connection.transport:
                connection.transport.abort()
        try:
            await task
        finally:
            bound.close()


async def _program() -> None:
    server = McpServer().server
    if sys.argv[1:2] == ["--noisy"]:
        print("a banner on stdout")
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_program())
