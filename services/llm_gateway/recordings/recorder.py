"""An HTTP client that writes down what goes through it (LOCI_LLM_RECORD); recording.py says in which form.

Lines are made and written on a thread of their own, appended whole, each with one write, so that several processes may
share a file and a crash tears at most the last line. Credentials never come near: requests that fetch them are not
recorded, and headers of requests are none of our business.
"""

import asyncio
import logging
import os
import re
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.recordings.recording import (
    DESCRIBED,
    LEFT,
    WHOLE,
    Exchange,
    RecordedReply,
    RecordedRequest,
    exchange_line,
    file_name,
    kept_headers,
    provider_line,
    public_url,
    request_of,
)

logger = logging.getLogger(__name__)

# A recording with a hole cannot be replayed, so a full one ends.
MOST_BYTES = 256 * 1024 * 1024
# How a bearer token is fetched with a key (RFC 6749).
_FORM = "application/x-www-form-urlencoded"
# Options that are, or hold, credentials.
_HIDDEN = re.compile("token|secret|key|header|password", re.IGNORECASE)


class RecordingTransport(httpx2.AsyncBaseTransport):
    """The transport of `client`; each exchange is written to the provider's file."""

    def __init__(self, client: httpx2.AsyncClient, config: ProviderConfig, *, most_bytes: int = MOST_BYTES) -> None:
        self._client = client
        self._recorder = Recorder(config, most_bytes)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """One exchange; redirects are followed inside of it."""
        body = await request.aread()
        if request.headers.get("content-type", "").startswith(_FORM):
            return await self._client.send(request, stream=True)
        exchange = _Exchange(request_of(request.method, str(request.url), body), self._recorder)
        try:
            response = await self._client.send(request, stream=True)
        except (httpx2.HTTPError, OSError) as error:
            exchange.end(error)
            raise
        exchange.begin(response)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_RecordedStream(response, exchange),
            request=request,
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Closes the client, and waits until all is written."""
        await self._client.aclose()
        await self._recorder.close()


class _Exchange:
    """An exchange under way; written once it has ended."""

    def __init__(self, request: RecordedRequest, recorder: "Recorder") -> None:
        self._asked = request
        self._recorder = recorder
        self._at, self._started = datetime.now(UTC).isoformat(), time.monotonic()
        self._head = RecordedReply()
        self._chunks: list[tuple[int, bytes]] = []
        self._ended = False

    def begin(self, response: httpx2.Response) -> None:
        headers = kept_headers(response.headers.multi_items())
        self._head = RecordedReply(response.status_code, headers, self._elapsed())

    def add(self, chunk: bytes) -> None:
        self._chunks.append((self._elapsed(), chunk))

    def end(self, how: str | Exception) -> None:
        """Ends the exchange: it came WHOLE, or its caller LEFT, or an error ended it; the first call counts."""
        if self._ended:
            return
        self._ended = True
        end, reason = (how, "") if isinstance(how, str) else (type(how).__name__, str(how))
        answered = replace(self._head, chunks=self._chunks, end=end, reason=reason)
        self._recorder.add(Exchange(self._asked, answered, self._at))

    def _elapsed(self) -> int:
        return round((time.monotonic() - self._started) * 1000)


class _RecordedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, exchange: _Exchange) -> None:
        self._response = response
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        try:
            async for chunk in stream:
                self._exchange.add(chunk)
                yield chunk
        except (httpx2.HTTPError, OSError) as error:
            self._exchange.end(error)
            raise
        self._exchange.end(WHOLE)

    async def aclose(self) -> None:
        self._exchange.end(LEFT)
        await self._response.aclose()


class Recorder:
    """Appends to one provider's file."""

    def __init__(self, config: ProviderConfig, most_bytes: int) -> None:
        self._path = Path(config.record_to) / file_name(config.name, config.organization_id)
        self._most = most_bytes
        self._header = provider_line(describe(config))
        hidden = (str(value) for name, value in config.options.items() if _HIDDEN.search(name))
        self._secrets = [config.api_key, config.access_key, *hidden]
        self._thread = ThreadPoolExecutor(1, "recorder")
        self._file: int | None = None
        self._ended = False

    def add(self, exchange: Exchange) -> None:
        """Has the exchange written."""
        self._thread.submit(self._write, exchange).add_done_callback(_tell)

    async def close(self) -> None:
        """Waits until all is written."""
        await asyncio.to_thread(self._thread.shutdown)
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, exchange: Exchange) -> None:
        if self._ended:
            return
        if self._file is None:
            self._file = self._open()
        line = exchange_line(exchange, self._secrets)
        if os.fstat(self._file).st_size + len(line) > self._most:
            self._ended = True
            logger.warning("%s is full (%d bytes): nothing more is recorded", self._path, self._most)
            return
        while line:
            line = line[os.write(self._file, line) :]

    def _open(self) -> int:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = os.fstat(file).st_size
        # A crash may have torn the last line: what follows begins a line of its own.
        torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
        os.write(file, (b"\n" if torn else b"") + self._header)
        return file


def describe(config: ProviderConfig) -> dict[str, Any]:
    """Returns the fields of the provider that a replay needs; nothing secret."""
    fields = {name: getattr(config, name) for name in DESCRIBED}
    options = {name: value for name, value in config.options.items() if not _HIDDEN.search(name)}
    return fields | {"base_url": public_url(config.base_url), "options": options}


def _tell(written: "Future[None]") -> None:
    """Logs a line that cannot be written; calls go on."""
    if error := written.exception():
        logger.error("an exchange with a provider could not be recorded: %s", error)
