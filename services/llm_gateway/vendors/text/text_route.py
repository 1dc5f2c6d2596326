"""Calls to routes that answer with text, whole or as server-sent events up to [DONE]."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Protocol

from services.llm_gateway.core.chat import ChatRequest, Completed, Delta, Event
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.trace import traced
from services.llm_gateway.http.transport import Transport


class TextReader(Protocol):
    """What reads the replies of one route into its builder."""

    builder: ReplyBuilder

    def fault(self, reply: Mapping[str, Any]) -> int | None:
        """The status that an error which came as a reply would have had; None: it is no error."""
        ...

    def take(self, reply: Mapping[str, Any]) -> Iterator[Delta]:
        """Read a whole reply or one event of a stream."""
        ...

    async def end(self) -> Sequence[Delta]:
        """What is left once all has come. Raises LlmError."""
        ...


async def text_events(
    transport: Transport,
    config: ProviderConfig,
    path: str,
    body: bytes,
    request: ChatRequest,
    reader: TextReader,
    *,
    stream: bool,
) -> AsyncGenerator[Event, None]:
    """One call; see Provider.generate."""
    patience = request.stall_timeout or (config.stall_seconds if stream else config.reply_seconds)
    builder, handle = reader.builder, request.handle
    with traced(request, body) as trace, understood(config.name, request.handle):
        if stream:
            events, ended = transport.stream(path, body, handle=handle, patience=patience, trace=trace), False
            try:
                async for event in events:
                    if event.data == b"[DONE]":
                        ended = True
                        break
                    chunk = transport.parse(event.data, handle, trace)
                    _check(transport, reader, chunk, handle)
                    for delta in reader.take(chunk):
                        yield delta
            finally:
                await transport.leave(events, ended=ended)
            if builder.finish is None:
                raise transport.incomplete("ended the stream before the model had finished", handle)
        else:
            reply = await transport.post(path, body, handle=handle, patience=patience, trace=trace)
            _check(transport, reader, reply, handle)
            for _ in reader.take(reply):
                pass
        for delta in await reader.end():
            if stream:
                yield delta
        generation = builder.generation(request, config.name, len(body), trace)
    yield Completed(generation)


def _check(transport: Transport, reader: TextReader, reply: Mapping[str, Any], handle: str) -> None:
    status = reader.fault(reply)
    if status is not None:
        raise transport.refused(status, reply, handle)
