"""Calls by OpenAI's Responses, over HTTP or a WebSocket."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

import httpx2
import orjson

from services.llm_gateway.core.chat import ChatRequest, Completed, Event
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.http.errors import ReadRefusal
from services.llm_gateway.http.exchange import Call, Exchange
from services.llm_gateway.http.routes import Routes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.responses.replies import THOUGHTS_REFUSED, Reader, read_refusal
from services.llm_gateway.vendors.responses.translate import Terms, body_of, count_body_of, message_items
from services.llm_gateway.vendors.responses.websocket import Socket, SocketLost, Sockets

# Of accounts that have not proven who they are.
_SUMMARY_REFUSED = re.compile(r"reasoning[ .]summar(y|ies)", re.IGNORECASE)
# Errors that only say that a connection cannot be gone on with.
_LOST_CODES = frozenset({"previous_response_not_found", "websocket_connection_limit_reached"})
_LOST = re.compile("|".join(_LOST_CODES).encode())


class Responses:
    """One endpoint. `path` and `count_path` ("" where tokens are not counted) are as `routes` takes them; `origin` is
    whose the thoughts are.
    """

    def __init__(
        self,
        http: httpx2.AsyncClient,
        routes: Routes,
        caller: Caller,
        config: ProviderConfig,
        *,
        origin: str,
        path: str = "/responses",
        count_path: str = "",
        refusal: ReadRefusal = read_refusal,
    ) -> None:
        self._config = config
        self._origin = origin
        self._path = path
        self._count_path = count_path
        self._transport = Transport(http, routes, caller, refusal)
        self._exchange = Exchange(config, self._transport)
        self._sockets = Sockets(config, routes, path)
        self._terms = Terms()

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate. A term that an endpoint refuses is left out, and the call made again."""
        terms, delivered = self._terms, False
        while True:
            body = body_of(request, model, self._origin, terms)
            try:
                async with aclosing(self._send(request, body, stream=stream)) as events:
                    async for event in events:
                        delivered = True
                        yield event
                return
            except LlmBadRequest as error:
                conceded = _concede(terms, error.message)
                if delivered or conceded == terms:
                    raise
                terms = conceded
                # Whose account may have no summaries will not have them for the next call either.
                self._terms = replace(self._terms, summary=terms.summary)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Compatible servers may not have the route."""
        if not self._count_path:
            return None
        body, may_lack = count_body_of(request, model, self._origin), not self._config.is_vendor
        return await self._exchange.count(request, self._count_path, body, "input_tokens", may_lack=may_lack)

    async def close(self) -> None:
        """Closes the connections."""
        await self._sockets.close()
        await self._transport.close()

    def _send(self, request: ChatRequest, body: dict[str, Any], *, stream: bool) -> AsyncGenerator[Event, None]:
        config = self._config
        by_socket = request.websocket or bool(config.options.get("websocket"))
        # Recordings are of HTTP.
        if by_socket and request.run_key and not (config.record_to or config.replay_from):
            return self._over_sockets(request, body, stream=stream)
        return self._over_http(request, body, stream=stream)

    def _over_http(self, request: ChatRequest, body: dict[str, Any], *, stream: bool) -> AsyncGenerator[Event, None]:
        async def prepare() -> Call:
            data = orjson.dumps(body | {"stream": True} if stream else body)
            return Call(self._path, data, Reader(ReplyBuilder(), self._origin, request), stream)

        return self._exchange.generate(request, prepare, deltas=stream)

    async def _over_sockets(
        self, request: ChatRequest, body: dict[str, Any], *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        """Makes the call on the run's connection; where that is lost before anything was handed on, on a new one, and
        then by HTTP.
        """
        for fresh in (False, True):
            socket = await self._sockets.borrow(request.run_key, fresh=fresh)
            if socket is None:
                break
            delivered = False
            try:
                async with aclosing(self._on(socket, request, body, stream=stream)) as events:
                    async for event in events:
                        delivered = True
                        yield event
                return
            except SocketLost:
                if delivered:
                    raise self._transport.errors.incomplete(
                        "closed the connection in the middle", request.handle
                    ) from None
        async with aclosing(self._over_http(request, body, stream=stream)) as events:
            async for event in events:
                yield event

    async def _on(
        self, socket: Socket, request: ChatRequest, body: dict[str, Any], *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        """Makes one call on a borrowed connection, which is kept after a whole reply and closed after anything else."""
        seconds = self._config.stall_seconds if stream else self._config.reply_seconds
        patience = request.stall_timeout or seconds
        reader = Reader(ReplyBuilder(), self._origin, request)

        async def prepare() -> Call:
            connect = partial(self._receive, socket, patience, request.handle)
            return Call(self._path, socket.message(body), reader, True, connect=connect)

        is_kept = False
        try:
            async with aclosing(self._exchange.generate(request, prepare, deltas=stream)) as events:
                async for event in events:
                    if isinstance(event, Completed):
                        is_kept = True
                        if reader.completed:
                            items = message_items(event.generation.message, request, self._origin)
                            socket.keep(body, reader.builder.response_id, items)
                        # Before the caller hears of it: the run's next call comes at once.
                        self._sockets.give_back(request.run_key, socket)
                    yield event
        finally:
            if not is_kept:
                self._sockets.drop(request.run_key, socket)

    async def _receive(
        self, socket: Socket, patience: float, handle: str, message: bytes
    ) -> AsyncGenerator[bytes, None]:
        """Yields the events that answer the message. Raises SocketLost, also for an error that another connection would
        not give.
        """
        try:
            async with aclosing(socket.events(message, patience)) as events:
                async for data in events:
                    if _LOST.search(data) and (code := _error_code(data)) in _LOST_CODES:
                        raise SocketLost(code)
                    yield data
        except TimeoutError as error:
            raise self._transport.errors.silence(patience, handle) from error


def _error_code(data: bytes) -> str:
    try:
        error = orjson.loads(data).get("error")
    except (orjson.JSONDecodeError, AttributeError):
        return ""
    return str(error.get("code")) if isinstance(error, Mapping) else ""


def _concede(terms: Terms, refusal: str) -> Terms:
    """Returns the terms without the one that this refusal is about."""
    if terms.thoughts and THOUGHTS_REFUSED in refusal:
        return replace(terms, thoughts=False)
    if terms.summary and _SUMMARY_REFUSED.search(refusal):
        return replace(terms, summary=False)
    return terms
