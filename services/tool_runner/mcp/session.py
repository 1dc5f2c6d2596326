"""One live session with a server, on the official SDK. Imported when the first server is spoken to: 36 MB.

The SDK's session greets, answers pings and refuses what servers may ask for (sampling, elicitation, roots). Requests
go through its dispatcher as they are and come back unread: one bad tool in a list would fail the whole of it, and
results would be checked here against schemas that can be made to take for ever.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, NoReturn

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import LoggingMessageNotificationParams, ToolListChangedNotification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from services.tool_runner.mcp.handshake import (
    US,
    JsonObject,
    NotedEnd,
    Session,
    greet,
    has_ended,
    introduction,
    routing,
)
from services.tool_runner.mcp.pending import PendingRequests
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem, ServerError

Streams = tuple[Any, Any]
# Opens the two streams of a transport; failures below the protocol go to the watch.
Dial = Callable[[PendingRequests], AbstractAsyncContextManager[Streams]]
# Told what a server says while a call runs.
Listener = Callable[[str], None]

_UNREADABLE = ("Failed to parse", "Unexpected content type")
# Above those that the SDK counts for itself.
_FIRST_ID = 1_000_000
_ABANDON_SECONDS = 2.0
_CLOSE_SECONDS = 5.0
_LOOK_SECONDS = 1.0
_listening: ContextVar[Listener | None] = ContextVar("loci_mcp_listener", default=None)
_log = logging.getLogger(__name__)


class McpSession:
    """A session, served by a task of its own from `open` until it is closed, lost, or idle for `idle` seconds.

    on_change: told that the server's tools changed.
    """

    def __init__(self, dial: Dial, *, idle: float, on_change: Callable[[], None] | None = None) -> None:
        self._dial = dial
        self._on_change = on_change
        self._idle = idle
        self._watch = PendingRequests()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closing = False
        # Set when what `_until_unused` waits for may have come.
        self._changed = asyncio.Event()
        self._ids = itertools.count(_FIRST_ID)
        self._listeners: set[Listener] = set()
        self._ended = False
        self._busy = 0
        self.used = time.monotonic()
        self._version = ""
        self._dispatcher: JSONRPCDispatcher[Any]
        self._task: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Returns whether it takes new requests."""
        return not self._ended and not self._closing and not (self._task and self._task.done())

    @property
    def busy(self) -> int:
        """Requests under way."""
        return self._busy

    async def open(self, seconds: float) -> None:
        """Connects and greets. Raises McpProblem."""
        self._task = asyncio.create_task(self._serve())
        greeting = self._watch.greeting()
        try:
            waited: set[asyncio.Future[Any]] = {self._opened, greeting}
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not self._opened.done():
                if greeting.done():
                    greeting.result()
                raise McpProblem(Kind.TIMEOUT, self._watch.silence(seconds))
            self._opened.result()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Ends it. Idempotent."""
        self.retire()
        if self._task and not self._task.done():
            # It takes leave of the server, if that listens.
            _, still = await asyncio.wait({self._task}, timeout=0.5 if self._opened.done() else 0)
            if still:
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=_CLOSE_SECONDS)
        self._watch.close()

    def retire(self) -> None:
        """Takes no new requests; it ends when those under way have."""
        self._closing = True
        self._changed.set()

    async def ask(
        self,
        method: str,
        params: JsonObject,
        *,
        seconds: float,
        listener: Listener | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> JsonObject:
        """Returns the result, as the server sent it. Raises McpProblem, ServerError.

        listener: told its progress and logs. schema: of the tool that is called, which may ask for headers.
        """
        request_id = next(self._ids)
        failed = self._watch.expect(request_id)
        self._busy += 1
        self.used = time.monotonic()
        token = _listening.set(listener)
        if listener:
            self._listeners.add(listener)
        answer = asyncio.create_task(self._request(request_id, method, params, listener, schema or {}))
        try:
            waited: set[asyncio.Future[Any]] = {answer, failed}
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return self._settle(answer, failed, seconds)
        finally:
            _listening.reset(token)
            if listener:
                self._listeners.discard(listener)
            self._busy -= 1
            self.used = time.monotonic()
            self._changed.set()
            self._watch.forget(request_id)
            if not answer.done():
                answer.cancel()  # tells the server that nobody waits any more
                await asyncio.wait({answer}, timeout=_ABANDON_SECONDS)

    def _settle(self, answer: asyncio.Task[JsonObject], failed: asyncio.Future[NoReturn], seconds: float) -> JsonObject:
        if failed.done():
            if answer.done() and not answer.cancelled():
                answer.exception()
            problem = failed.exception()
            assert isinstance(problem, McpProblem)
            if problem.fresh:
                self.retire()
            raise problem
        if not answer.done():
            # What it is doing may keep its connection for ever.
            self.retire()
            raise McpProblem(Kind.TIMEOUT, self._watch.silence(seconds), arrived=True)
        try:
            return answer.result()
        except MCPError as error:
            if has_ended(error):
                self.retire()
                raise self._lost() from None
            if error.message.startswith(_UNREADABLE):
                raise McpProblem(Kind.FAILED, "the MCP server's answer is not of the protocol", arrived=True) from None
            raise ServerError(error.message, error.code) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, RuntimeError):
            self.retire()
            raise self._lost() from None

    def _lost(self) -> McpProblem:
        if self._watch.lost:
            return self._watch.lost
        return McpProblem(Kind.UNREACHABLE, "the connection to the MCP server was lost", arrived=True, fresh=True)

    async def _request(
        self, request_id: int, method: str, params: JsonObject, listener: Listener | None, schema: Mapping[str, Any]
    ) -> JsonObject:
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version}
        if self._version in MODERN_PROTOCOL_VERSIONS:
            headers |= routing(method, params, schema)
            params = {**params, "_meta": introduction(self._version)}
        options: Any = {"request_id": request_id, "headers": headers}
        if listener:
            options["on_progress"] = _progress(listener)
        return await self._dispatcher.send_raw_request(method, params, options)

    async def _serve(self) -> None:
        """Runs the session from its beginning to its end, in one task, as the SDK wants it."""
        try:
            async with self._dial(self._watch) as (read, write):
                noted = NotedEnd(read, self._note_end)
                self._dispatcher = JSONRPCDispatcher(noted, write)
                session = Session(
                    dispatcher=self._dispatcher,
                    logging_callback=self._on_log,
                    message_handler=self._on_message,
                    client_info=US,
                )
                async with session:
                    self._version = await greet(session)
                    if not self._opened.done():
                        self._opened.set_result(None)
                    self.used = time.monotonic()  # to begin may take longer than an idle one is kept
                    await self._until_unused()
        except asyncio.CancelledError:
            raise
        # A supervisor: transports fail in groups of whatever their tasks raised.
        except Exception as error:  # noqa: BLE001
            self._watch.end(_problem(error))
        finally:
            self._ended = True
            self._watch.end(self._lost())

    async def _until_unused(self) -> None:
        """Waits until it is closed, has ended, or nobody asked for long; its last requests are waited for."""
        while not self._ended and (self._busy or not self._is_over()):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _LOOK_SECONDS)
            self._changed.clear()
        self._closing = True  # its end takes a while, and who asks meanwhile is to have another one

    def _is_over(self) -> bool:
        return self._closing or time.monotonic() - self.used >= self._idle

    def _note_end(self) -> None:
        self._ended = True
        self._changed.set()

    async def _on_message(self, message: object) -> None:
        if self._on_change and isinstance(message, ToolListChangedNotification):
            self._on_change()

    async def _on_log(self, params: LoggingMessageNotificationParams) -> None:
        listener = _listening.get()
        if listener is None and len(self._listeners) == 1:
            listener = next(iter(self._listeners))
        if listener:
            text = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
            listener(f"[{params.level}] {text}")


def _progress(listener: Listener) -> Any:
    async def report(progress: float, total: float | None, message: str | None) -> None:
        of = f"/{total:g}" if total else ""
        listener(f"[progress {progress:g}{of}] {message or ''}".rstrip())

    return report


def _problem(error: BaseException) -> McpProblem:
    """Returns what a session that could not begin ended with."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, McpProblem):
        return error
    if isinstance(error, MCPError):
        return McpProblem(Kind.FAILED, f"the MCP server refused the session: {str(error)[:300]}")
    _log.info("an MCP session could not begin", extra={"problem": type(error).__name__})
    return McpProblem(Kind.FAILED, f"this is not an MCP server, or not one of this transport ({type(error).__name__})")
