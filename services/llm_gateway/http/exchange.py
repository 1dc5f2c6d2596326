"""The one exchange with a provider: a call is sent, its reply read and traced, and what goes wrong is an LlmError.

A vendor says what is sent where (`Call`), and gives the reader of what comes.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Completed, Delta, Event
from services.llm_gateway.core.errors import ModelNotFound
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_guard import reply_guard
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.core.sse import SseParser
from services.llm_gateway.core.trace import Trace, tracing
from services.llm_gateway.http.transport import Parser, Transport

# How streams of Chat Completions, and of who imitates them, end.
_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Call:
    """A request and the reader of its reply. `is_stream`: the reply is a stream, which `parser` cuts into events.

    `connect` sends the body another way than by HTTP and returns the events; it waits as long as it thinks right.
    `last` asks the provider for what the reader cannot find by itself, once everything has come.
    """

    path: str
    body: bytes
    reader: ReplyReader
    is_stream: bool
    parser: Callable[[], Parser[Any]] = SseParser
    connect: Callable[[bytes], AsyncGenerator[bytes, None]] | None = None
    last: Callable[[], Awaitable[Iterable[Delta]]] | None = None


class Exchange:
    """Exchanges with one provider."""

    def __init__(self, config: ProviderConfig, transport: Transport) -> None:
        self._config = config
        self._transport = transport

    async def generate(
        self, request: ChatRequest, prepare: Callable[[], Awaitable[Call]], *, deltas: bool
    ) -> AsyncGenerator[Event, None]:
        """The reply to the call that `prepare` makes, with or without its deltas. See Provider.generate."""
        call = await prepare()
        reader, name = call.reader, self._config.name
        with tracing(request, call.body) as trace, reply_guard(name, request.handle):
            body = call.body
            while body:
                replies = self._stream if call.is_stream else self._whole
                async with aclosing(replies(request, call, body, trace)) as read:
                    async for delta in read:
                        if deltas:
                            yield delta
                body = reader.next_body()
            for delta in (*reader.close(), *(await call.last() if call.last else ()), *reader.builder.close()):
                if deltas:
                    yield delta
            generation = reader.complete(reader.builder.generation(request, name, len(call.body), trace))
        yield Completed(generation)

    async def _whole(
        self, request: ChatRequest, call: Call, body: bytes, trace: Trace | None
    ) -> AsyncGenerator[Delta, None]:
        reader, handle = call.reader, request.handle
        patience = request.stall_timeout or self._config.reply_seconds
        reply = await self._transport.post(
            call.path, body, handle=handle, patience=patience, trace=trace, on_headers=reader.take_headers
        )
        deltas = reader.take_whole(reply)
        self._check(reader, handle)
        for delta in deltas:
            yield delta

    async def _stream(
        self, request: ChatRequest, call: Call, body: bytes, trace: Trace | None
    ) -> AsyncGenerator[Delta, None]:
        reader, handle, transport, ended = call.reader, request.handle, self._transport, False
        events = self._events(request, call, body, trace)
        try:
            async for event in events:
                data = event if isinstance(event, bytes) else event.data
                if not data.strip():
                    continue
                if data.strip() == _DONE:
                    reader.take_done()
                    ended = True
                    break
                for delta in reader.take_event(transport.parse(data, handle, trace)):
                    yield delta
                if reader.failure is not None or reader.ended:
                    ended = reader.ended
                    break
        finally:
            # Another connection than HTTP's is its owner's to keep.
            await transport.leave(events, ended=ended and call.connect is None)
        self._check(reader, handle)

    def _events(self, request: ChatRequest, call: Call, body: bytes, trace: Trace | None) -> AsyncGenerator[Any, None]:
        if call.connect is not None:
            return call.connect(body)
        return self._transport.events(
            call.path,
            body,
            call.parser(),
            handle=request.handle,
            patience=request.stall_timeout or self._config.stall_seconds,
            trace=trace,
            on_headers=call.reader.take_headers,
        )

    async def count(
        self, request: ChatRequest, path: str, body: bytes, field: str, *, may_lack: bool = False
    ) -> int | None:
        """Returns the tokens that a route counts, the number in that field; None where it gives none. `may_lack`: the
        server may not have the route."""
        patience = request.stall_timeout or self._config.stall_seconds
        try:
            reply = await self._transport.post(path, body, handle=request.handle, patience=patience)
        except ModelNotFound:
            if may_lack:
                return None
            raise
        tokens = reply.get(field)
        return tokens if isinstance(tokens, int) else None

    def _check(self, reader: ReplyReader, handle: str) -> None:
        """Raises LlmError for a reply that is an error, or that broke off."""
        if reader.failure is not None:
            raise self._transport.errors.refusal(*reader.failure, handle)
        if not reader.is_complete:
            raise self._transport.errors.incomplete("ended the reply before the model had finished", handle)
