"""The server's side of a WebSocket (RFC 6455) on our HTTP server: text messages, pings, closing."""

import asyncio
import base64
import hashlib
import struct
from collections.abc import Coroutine
from typing import Any

from tests.fakes.http import Exchange, Request

_KEY = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CONTINUED, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA


def is_upgrade(request: Request) -> bool:
    """Returns whether the request asks for a WebSocket."""
    return request.headers.get("upgrade", "").lower() == "websocket"


class WebSocket:
    """One connection, once it is accepted."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._buffer = bytearray()
        self._message = bytearray()
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    async def accept(cls, request: Request, exchange: Exchange) -> "WebSocket":
        """Answer the handshake."""
        socket = cls(exchange)
        digest = hashlib.sha1((request.headers["sec-websocket-key"] + _KEY).encode()).digest()
        head = {"upgrade": "websocket", "connection": "Upgrade"}
        head["sec-websocket-accept"] = base64.b64encode(digest).decode()
        await exchange.switch(head, socket._take)
        return socket

    async def receive(self) -> bytes | None:
        """The next message; None when the client closed."""
        gone = asyncio.create_task(self._exchange.wait_gone())
        message = asyncio.create_task(self._messages.get())
        await asyncio.wait((gone, message), return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not message.done():
            message.cancel()
            return None
        return message.result()

    async def send(self, text: bytes) -> None:
        """Send a text message. Raises ClientGone."""
        await self._exchange.write_raw(_frame(_TEXT, text))

    async def ping(self) -> None:
        """Ask whether the client is there."""
        await self._exchange.write_raw(_frame(_PING, b"there?"))

    async def close(self, code: int = 1000) -> None:
        """Say goodbye, and close the connection."""
        await self._exchange.write_raw(_frame(_CLOSE, struct.pack("!H", code)))
        self._exchange.cut()

    def cut(self) -> None:
        """Close the connection without a word."""
        self._exchange.cut()

    async def wait_gone(self) -> None:
        """Return when the client has closed."""
        await self._exchange.wait_gone()

    def _take(self, data: bytes) -> None:
        self._buffer += data
        while (frame := _parsed(self._buffer)) is not None:
            self._take_frame(*frame)

    def _take_frame(self, final: bool, kind: int, payload: bytes) -> None:
        if kind in (_TEXT, _BINARY, _CONTINUED):
            self._message += payload
            if final:
                self._messages.put_nowait(bytes(self._message))
                self._message.clear()
        elif kind == _CLOSE:
            self._messages.put_nowait(None)
            self._later(self.close())
        elif kind == _PING:
            self._later(self._exchange.write_raw(_frame(_PONG, payload)))

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _frame(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | kind, size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x80 | kind, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | kind, 127, size)
    return head + payload


def _parsed(buffer: bytearray) -> tuple[bool, int, bytes] | None:
    """Take one whole frame off the front: whether it is its message's last, its kind and its payload."""
    if len(buffer) < 2:
        return None
    size, start = buffer[1] & 0x7F, 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(buffer) < 2 + width:
            return None
        size, start = int.from_bytes(buffer[2 : 2 + width]), 2 + width
    masked = bool(buffer[1] & 0x80)
    end = start + (4 if masked else 0) + size
    if len(buffer) < end:
        return None
    mask = bytes(buffer[start : start + 4]) if masked else b"\0\0\0\0"
    payload = bytes(buffer[end - size : end])
    first = buffer[0]
    del buffer[:end]
    pad = (mask * (size // 4 + 1))[:size]
    unmasked = (int.from_bytes(payload) ^ int.from_bytes(pad)).to_bytes(size) if size else b""
    return bool(first & 0x80), first & 0x0F, unmasked
