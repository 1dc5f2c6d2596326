"""A raw HTTP/1.1 client over one kept-alive connection: the load's own cost stays small and steady."""

import asyncio
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import orjson


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: its body, and when its first chunk with `marker` came, on time.perf_counter's clock."""

    status: int
    body: bytes
    marked_at: float | None = None

    def json(self) -> Any:
        """The body's data."""
        return orjson.loads(self.body)


class Connection:
    """One connection; not for concurrent requests."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        self._streams = await asyncio.open_connection(self._host, self._port, limit=2**22)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._streams is not None
        self._streams[1].close()

    async def request(self, method: str, path: str, body: Any = None, *, marker: bytes | None = None) -> Answer:
        """Sends a request and reads the whole response. `marker`: what to look for in its chunks."""
        assert self._streams is not None
        reader, writer = self._streams
        data = b"" if body is None else orjson.dumps(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAuthorization: Bearer sk-bench\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        writer.write(head.encode() + data)
        status_line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines if ": " in line)
        status = int(status_line.split(" ")[1])
        if headers.get("transfer-encoding") == "chunked":
            return await _chunked(reader, status, marker)
        return Answer(status, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _chunked(reader: asyncio.StreamReader, status: int, marker: bytes | None) -> Answer:
    body, marked_at = bytearray(), None
    while size := int(await reader.readuntil(b"\r\n"), 16):
        chunk = (await reader.readexactly(size + 2))[:-2]
        if marker is not None and marked_at is None and marker in chunk:
            marked_at = time.perf_counter()
        body += chunk
    await reader.readuntil(b"\r\n")
    return Answer(status, bytes(body), marked_at)
