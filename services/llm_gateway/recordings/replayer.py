"""Answers calls from a recording (LOCI_LLM_REPLAY), with the network closed; recording.py says what one holds.

Equal requests are answered in recorded order, the last answer again and again. With LOCI_LLM_REPLAY_MATCH=order a
request that was not recorded is answered by the next exchange at its place: an agent's prompt says the time, so what
it asks on another day is never quite the same.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import httpx2

from services.llm_gateway.core.errors import LlmReplayMissing
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.recordings.differences import differing, nearest
from services.llm_gateway.recordings.recording import (
    LEFT,
    WHOLE,
    Exchange,
    RecordedReply,
    RecordedRequest,
    Recording,
    file_name,
    read,
    request_of,
)

logger = logging.getLogger(__name__)

_LOGGED = 10


class ReplayingTransport(httpx2.AsyncBaseTransport):
    """The recorded replies of one provider."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._exchanges: _Exchanges | None = None
        self._lock = asyncio.Lock()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Returns the reply that was recorded. Raises LlmReplayMissing, or the error of HTTP that was recorded."""
        recorded = request_of(request.method, str(request.url), await request.aread())
        async with self._lock:
            if self._exchanges is None:
                self._exchanges = await asyncio.to_thread(self._read)
        exchange = self._exchanges.next(recorded, in_order=self._config.replay_in_order)
        if exchange is None:
            raise await asyncio.to_thread(self._missing, recorded, self._exchanges)
        answered = exchange.answered
        if not answered.status:
            raise _error(answered, request)
        stream = _ReplayedStream(answered, request)
        return httpx2.Response(answered.status, headers=list(answered.headers), stream=stream, request=request)

    def _read(self) -> "_Exchanges":
        return _Exchanges(one for recorded in recordings(self._config) for one in recorded.exchanges)

    def _missing(self, asked: RecordedRequest, exchanges: "_Exchanges") -> LlmReplayMissing:
        name = self._config.name
        difference = nearest(asked, [one.asked for one in exchanges.all])
        return LlmReplayMissing(
            f"The recording of {name} in {self._config.replay_from} does not hold this call: {difference}.",
            provider=name,
        )


@dataclass
class _Answers:
    """The exchanges of equal requests, in recorded order."""

    exchanges: list[Exchange] = field(default_factory=list)
    given: int = 0

    def next(self) -> Exchange:
        self.given += 1
        return self.exchanges[min(self.given, len(self.exchanges)) - 1]


class _Exchanges:
    def __init__(self, recorded: Iterable[Exchange]) -> None:
        self.all = list(recorded)
        self._by_key: dict[bytes, _Answers] = defaultdict(_Answers)
        self._by_place: dict[object, list[Exchange]] = defaultdict(list)
        for exchange in self.all:
            self._by_key[exchange.asked.key].exchanges.append(exchange)
            self._by_place[_kind(exchange.asked)].append(exchange)
        self._used: set[int] = set()

    def next(self, asked: RecordedRequest, *, in_order: bool) -> Exchange | None:
        """Returns the exchange that answers this request; None: nothing was recorded for it."""
        answers = self._by_key.get(asked.key)
        exchange = answers.next() if answers else self._next_at(asked) if in_order else None
        if exchange is not None:
            self._used.add(id(exchange))
        return exchange

    def _next_at(self, asked: RecordedRequest) -> Exchange | None:
        at_place = self._by_place.get(_kind(asked), [])
        exchange = next((one for one in at_place if id(one) not in self._used), None)
        if exchange is not None:
            # Where, and never what: prompts do not belong into a log.
            places = ", ".join(differing(asked, exchange.asked)[:_LOGGED])
            logger.warning("a request to %s is answered by one that differs at: %s", asked.path, places)
        return exchange


class _ReplayedStream(httpx2.AsyncByteStream):
    def __init__(self, answered: RecordedReply, request: httpx2.Request) -> None:
        self._answered = answered
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _, chunk in self._answered.chunks:
            yield chunk
            # Others get their turn between two chunks, as they do where bytes come from a network.
            await asyncio.sleep(0)
        if self._answered.end != WHOLE:
            raise _error(self._answered, self._request)


def recordings(config: ProviderConfig) -> list[Recording]:
    """Returns the provider's recording. That of a tenant's provider also answers for one of the same name that is the
    operator's: where it is replayed there may be no such tenant.
    """
    folder = Path(config.replay_from)
    own = folder / file_name(config.name, config.organization_id)
    others = [] if config.organization_id else sorted(folder.glob(file_name(config.name, "*")))
    return [_file(path) for path in ([own] if own.exists() else others)]


def all_recordings(folder: str) -> list[Recording]:
    """Returns every provider's recording in a folder."""
    return [_file(path) for path in sorted(Path(folder).glob("*.jsonl"))]


def _file(path: Path) -> Recording:
    with path.open("rb") as lines:
        recorded = read(lines)
    if recorded.torn:
        logger.warning("%s has %d lines that were torn by a crash; they are passed over", path, recorded.torn)
    return recorded


def _kind(asked: RecordedRequest) -> object:
    """Returns what two exchanges must share for one to answer for the other, even in order: place, model, streaming."""
    value = asked.value
    about = (value.get("model"), value.get("stream")) if isinstance(value, dict) else ()
    return asked.place, about


def _error(answered: RecordedReply, request: httpx2.Request) -> httpx2.TransportError:
    """Returns the error of HTTP by which an exchange ended."""
    if answered.end == LEFT:
        return httpx2.ReadError("the recording ends here, because its caller left", request=request)
    kind = getattr(httpx2, answered.end, httpx2.ConnectError)
    known = isinstance(kind, type) and issubclass(kind, httpx2.TransportError)
    return (kind if known else httpx2.ConnectError)(answered.reason, request=request)
