"""Calls by OpenAI's Responses, over HTTP or a WebSocket."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx2
import orjson

from services.llm_gateway.core.chat import ChatRequest, Completed, Event
from services.llm_gateway.core.errors import LlmBadRequest, LlmError, ModelNotFound
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller, retry_after
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.trace import Trace, traced
from services.llm_gateway.http.routes import Routes
from services.llm_gateway.http.transport import ReadRefusal, Transport
from services.llm_gateway.vendors.openai.translate import finished
from services.llm_gateway.vendors.responses.replies import THOUGHTS_REFUSED, Reader, read_refusal
from services.llm_gateway.vendors.responses.translate import DIALECT, Terms, body_of, count_body_of, message_items
from services.llm_gateway.vendors.responses.websocket import Socket, SocketLost, Sockets

# Of accounts that have not proven who they are.
_SUMMARY_REFUSED = re.compile(r"reasoning[ .]summar(y|ies)", re.IGNORECASE)
# Errors that only say that a connection cannot be gone on with.
_LOST = frozenset({"previous_response_not_found", "websocket_connection_limit_reached"})


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
        self._sockets = Sockets(config, routes, path)
        self._terms = Terms()

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate. What an endpoint refuses of the terms is left out, and the call made again."""
        terms, delivered = self._terms, False
        while True:
            body = body_of(request, model, self._origin, terms)
            try:
                async with aclosing(self._called(request, body, stream=stream)) as events:
                    async for event in events:
                        delivered = True
                        yield event
                return
            except LlmBadRequest as error:
                conceded = _conceded(terms, error.message)
                if delivered or conceded == terms:
                    raise
                terms = conceded
                # Whose account may have no summaries will not have them for the next call either.
                self._terms = replace(self._terms, summary=terms.summary)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Compatible servers may not have the route."""
        if not self._count_path:
            return None
        body = count_body_of(request, model, self._origin)
        patience = request.stall_timeout or self._config.stall_seconds
        try:
            reply = await self._transport.post(self._count_path, body, handle=request.handle, patience=patience)
        except ModelNotFound:
            if self._config.is_vendor:
                raise
            return None
        tokens = reply.get("input_tokens")
        return tokens if isinstance(tokens, int) else None

    async def close(self) -> None:
        """Close the connections."""
        await self._sockets.close()
        await self._transport.close()

    def _called(self, request: ChatRequest, body: dict[str, Any], *, stream: bool) -> AsyncGenerator[Event, None]:
        config = self._config
        wanted = request.websocket or bool(config.options.get("websocket"))
        # Recordings are of HTTP.
        if wanted and request.run_key and not (config.record_to or config.replay_from):
            return self._over_sockets(request, body, stream=stream)
        return self._over_http(request, body, stream=stream)

    def _over_http(self, request: ChatRequest, body: dict[str, Any], *, stream: bool) -> AsyncGenerator[Event, None]:
        return self._streamed(request, body) if stream else self._whole(request, body)

    async def _whole(self, request: ChatRequest, body: dict[str, Any]) -> AsyncGenerator[Event, None]:
        data, handle = orjson.dumps(body), request.handle
        patience = request.stall_timeout or self._config.reply_seconds
        reader = Reader(ReplyBuilder(), self._origin)
        with traced(request, data) as trace, understood(self._config.name, request.handle):
            reply = await self._transport.post(self._path, data, handle=handle, patience=patience, trace=trace)
            reader.take_whole(reply)
            completed = self._completed(reader, request, len(data), trace)
        yield completed

    async def _streamed(self, request: ChatRequest, body: dict[str, Any]) -> AsyncGenerator[Event, None]:
        data, handle, transport = orjson.dumps(body | {"stream": True}), request.handle, self._transport
        patience = request.stall_timeout or self._config.stall_seconds
        reader = Reader(ReplyBuilder(), self._origin)
        with traced(request, data) as trace, understood(self._config.name, request.handle):
            events = transport.stream(self._path, data, handle=handle, patience=patience, trace=trace)
            try:
                async for event in events:
                    if event.data == b"[DONE]":  # some compatible servers end as Chat Completions does
                        break
                    for delta in reader.take_event(transport.parse(event.data, handle, trace)):
                        yield delta
                    if reader.ended:
                        break
            finally:
                await transport.leave(events, ended=reader.ended)
            completed = self._completed(reader, request, len(data), trace)
        yield completed

    async def _over_sockets(
        self, request: ChatRequest, body: dict[str, Any], *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        """On the run's connection; where it is lost before anything was handed on, on a new one, and then by HTTP."""
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
                    raise self._transport.incomplete("closed the connection in the middle", request.handle) from None
        async with aclosing(self._over_http(request, body, stream=stream)) as events:
            async for event in events:
                yield event

    async def _on(
        self, socket: Socket, request: ChatRequest, body: dict[str, Any], *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        """One call on a borrowed connection, which is kept after a whole reply and closed after anything else."""
        message, handle = socket.message(body), request.handle
        seconds = self._config.stall_seconds if stream else self._config.reply_seconds
        patience = request.stall_timeout or seconds
        builder = ReplyBuilder()
        reader, keep = Reader(builder, self._origin), False
        try:
            with traced(request, message) as trace, understood(self._config.name, request.handle):
                async with aclosing(self._received(socket, message, patience, handle, trace)) as events:
                    async for event in events:
                        for delta in reader.take_event(event):
                            if stream:
                                yield delta
                        if reader.ended:
                            break
                completed = self._completed(reader, request, len(message), trace)
            keep = True
            if reader.completed:
                said = message_items(completed.generation.message, request, self._origin)
                socket.keep(body, builder.response_id, said)
        finally:
            if keep:
                self._sockets.give_back(request.run_key, socket)
            else:
                self._sockets.drop(request.run_key, socket)
        yield completed

    async def _received(
        self, socket: Socket, message: bytes, patience: float, handle: str, trace: Trace | None
    ) -> AsyncGenerator[dict[str, Any], None]:
        """The events that answer the message. Raises SocketLost, also for an error that another connection would not
        give."""
        try:
            async with aclosing(socket.events(message, patience)) as events:
                async for data in events:
                    event = self._transport.parse(data, handle, trace)
                    error = event.get("error")
                    if isinstance(error, Mapping) and error.get("code") in _LOST:
                        raise SocketLost(str(error["code"]))
                    yield event
        except TimeoutError as error:
            raise self._transport.silent(patience, handle) from error

    def _completed(self, reader: Reader, request: ChatRequest, size: int, trace: Trace | None) -> Completed:
        """The reply that was read. Raises LlmError for one that failed or broke off."""
        if reader.failure is not None:
            raise self._failed(*reader.failure, request.handle)
        if not reader.ended:
            raise self._transport.incomplete("ended the stream before the model had finished", request.handle)
        generation = reader.builder.generation(request, self._config.name, size, trace)
        return Completed(finished(generation, request, DIALECT))

    def _failed(self, status: int, body: Mapping[str, Any], handle: str) -> LlmError:
        error = self._transport.refused(status, body, handle)
        headers = body["error"].get("headers")
        if isinstance(headers, Mapping):
            error.retry_after = retry_after({name.lower(): str(value) for name, value in headers.items()})
        return error


def _conceded(terms: Terms, refusal: str) -> Terms:
    """The terms without what this refusal is about."""
    if terms.thoughts and THOUGHTS_REFUSED in refusal:
        return replace(terms, thoughts=False)
    if terms.summary and _SUMMARY_REFUSED.search(refusal):
        return replace(terms, summary=False)
    return terms
