"""HTTP between a tool and a host, a request at a time: read, changed, sent on; and the response back, as it comes."""

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

import h11

from services.tool_runner.core.ports import Connection
from services.tool_runner.egress.destinations import Origin, Unreachable
from services.tool_runner.egress.protocol import rewrite
from services.tool_runner.egress.protocol.rewrite import CannotBeSent, Outgoing
from services.tool_runner.egress.streams import DRAINED_BYTES, DRAINED_SECONDS, PrefixedStream, Socket, join

MOST_HEAD_BYTES = 64 * 1024
# From the first byte of a request's head to its last.
HEAD_SECONDS = 20.0
_MOST_REASON = 400
# A kept connection is not used any more when it was idle for so long: its host may be about to close it.
_KEPT_SECONDS = 3.0


class Peer:
    """One side of HTTP/1.1, on a connection."""

    def __init__(self, role: type[h11.CLIENT] | type[h11.SERVER], connection: Connection) -> None:
        self.http = h11.Connection(role, max_incomplete_event_size=MOST_HEAD_BYTES)
        self.connection = connection

    async def next(self) -> h11.Event | type[h11.PAUSED]:
        """Returns what the other side says next. Raises OSError, h11.RemoteProtocolError."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.connection.read())
        return event  # type: ignore[return-value]

    async def send(self, event: h11.Event) -> None:
        """Raises OSError, h11.LocalProtocolError."""
        if data := self.http.send(event):
            await self.connection.write(data)

    async def request(self) -> h11.Request | None:
        """Returns the next request; None at the end, also where what comes is none. Raises OSError."""
        if not self.http.trailing_data[0]:
            self.http.receive_data(await self.connection.read())
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                event = await self.next()
        except h11.RemoteProtocolError as error:
            await self.answer(error.error_status_hint, f"this is not a request of HTTP/1.1: {error}")
            return None
        except TimeoutError:
            await self.answer(408, f"the head of the request did not come within {HEAD_SECONDS:g} s")
            return None
        return event if isinstance(event, h11.Request) else None

    async def answer(self, status: int, sentence: str) -> None:
        """Sends a response of our own. The sentence is its reason, too: of a CONNECT, clients show nothing else.

        No other request can come after one that is not whole.
        """
        body = f"{sentence}\n".encode()
        headers = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))]
        await self._drain()
        if self.http.their_state in (h11.IDLE, h11.SEND_BODY, h11.ERROR):
            headers.append(("connection", "close"))
        reason = sentence[:_MOST_REASON].encode("ascii", "replace")
        await self.send(h11.Response(status_code=status, headers=headers, reason=reason))
        await self.send(h11.Data(data=body))
        await self.send(h11.EndOfMessage())

    def goes_on(self) -> bool:
        """Returns whether another request may come; begins it."""
        if self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
            return False
        self.http.start_next_cycle()
        return True

    def rest(self) -> PrefixedStream:
        """Returns the connection after HTTP: what was read too far, then what comes."""
        return PrefixedStream(self.http.trailing_data[0], self.connection)

    async def _drain(self) -> None:
        """Reads the rest of the request, within bounds."""
        read = 0
        with suppress(TimeoutError, OSError, h11.RemoteProtocolError):
            async with asyncio.timeout(DRAINED_SECONDS):
                while self.http.their_state is h11.SEND_BODY and not self.http.they_are_waiting_for_100_continue:
                    event = await self.next()
                    read += len(event.data) if isinstance(event, h11.Data) else 0
                    if read > DRAINED_BYTES:
                        break


class KeptConnection:
    """The connection to a host that the last request of a connection used, for the next one."""

    def __init__(self) -> None:
        self._held: tuple[Origin, Peer, float] | None = None
        self._is_fresh = False

    def begin(self, origin: Origin, socket: Socket) -> None:
        """Begins with a connection that is not used yet."""
        self._held, self._is_fresh = (origin, Peer(h11.CLIENT, socket), time.monotonic()), True

    async def take(self, origin: Origin) -> Peer | None:
        """Returns the one to `origin`, if it still stands."""
        held, self._held = self._held, None
        if held is None:
            return None
        peer = held[1]
        if held[0] != origin or _is_over(peer) or time.monotonic() - held[2] > _KEPT_SECONDS:
            await peer.connection.close()
            return None
        if not self._is_fresh:
            peer.http.start_next_cycle()
        self._is_fresh = False
        return peer

    async def put(self, origin: Origin, peer: Peer, *, usable: bool) -> None:
        """Keeps it, or closes it."""
        if usable:
            self._held = (origin, peer, time.monotonic())
        else:
            await peer.connection.close()

    async def close(self) -> None:
        """Closes it."""
        if self._held is not None:
            await self._held[1].connection.close()


def _is_over(peer: Peer) -> bool:
    assert isinstance(peer.connection, Socket)
    return peer.connection.is_over


async def exchange(tool: Peer, request: h11.Request, world: Peer, outgoing: Outgoing) -> bool:
    """Sends a request on and its response back. Whether the world's side may be used again.

    Raises CannotBeSent or Unreachable before anything was answered; OSError and h11.ProtocolError where nothing can be
    said any more.
    """
    websocket = rewrite.is_websocket(request.headers)
    await _send_head(world, request, outgoing, websocket=websocket)
    # The body goes on while the response comes: either may be endless, and 100 Continue is the host's to say.
    sending = asyncio.create_task(_send_body(tool, world))
    try:
        await _send_back(tool, request, world, outgoing.masks)
    except Unreachable:
        if sending.done() and not sending.result():
            raise CannotBeSent("the body of the request is malformed, or was cut short") from None
        raise
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    return world.http.our_state is h11.DONE and world.http.their_state is h11.DONE


async def _send_head(world: Peer, request: h11.Request, outgoing: Outgoing, *, websocket: bool) -> None:
    headers = list(outgoing.headers)
    if _is_chunked(request):
        headers.append((b"transfer-encoding", b"chunked"))
    if websocket:
        headers += [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    try:
        head = h11.Request(method=request.method, target=outgoing.target, headers=headers)
        await world.send(head)
    except h11.LocalProtocolError as error:
        raise CannotBeSent(f"the request cannot be sent on: {error}") from None
    except OSError as error:
        raise Unreachable(f"the host closed the connection: {error}") from None


async def _send_body(tool: Peer, world: Peer) -> bool:
    """Returns whether all of it came; where not, the host is left alone at once."""
    try:
        while isinstance(event := await tool.next(), h11.Data):
            await world.send(h11.Data(data=event.data))
        await world.send(h11.EndOfMessage())
    except h11.RemoteProtocolError:
        await world.connection.close()
        return False
    except OSError:
        # Either is gone. What the host has said already is still worth telling.
        return True
    return True


async def _send_back(tool: Peer, request: h11.Request, world: Peer, masks: Mapping[bytes, bytes]) -> None:
    while True:
        event = await _from_world(world)
        match event:
            case h11.InformationalResponse(status_code=101):
                await _switch(tool, world, event, masks)
                return
            case h11.InformationalResponse():
                if request.http_version >= b"1.1":
                    await tool.send(h11.InformationalResponse(status_code=event.status_code, headers=[]))
            case h11.Response():
                await tool.send(_response(event, masks))
                await _send_back_body(tool, world)
                return
            case _:
                raise Unreachable("the host closed the connection without an answer")


async def _from_world(world: Peer) -> h11.Event | type[h11.PAUSED]:
    try:
        return await world.next()
    except h11.RemoteProtocolError as error:
        raise Unreachable(f"the host does not speak HTTP/1.1: {error}") from None
    except OSError as error:
        raise Unreachable(f"the host broke the connection: {error}") from None


async def _send_back_body(tool: Peer, world: Peer) -> None:
    # From here on a failure cannot be told: the response has begun.
    while isinstance(event := await world.next(), h11.Data):
        await tool.send(h11.Data(data=event.data))
    if not isinstance(event, h11.EndOfMessage):
        raise ConnectionError("the response was cut short")
    await tool.send(h11.EndOfMessage())


async def _switch(tool: Peer, world: Peer, granted: h11.InformationalResponse, masks: Mapping[bytes, bytes]) -> None:
    headers = rewrite.mask_headers(rewrite.forward_headers(granted.headers), masks)
    headers += [(b"connection", b"Upgrade"), (b"upgrade", b"websocket")]
    if tool.http.their_state is h11.SEND_BODY:
        raise Unreachable("the host changed the protocol before the request had ended")
    await tool.send(h11.InformationalResponse(status_code=101, headers=headers, reason=b"Switching Protocols"))
    socket, first = world.connection, world.http.trailing_data[0]
    assert isinstance(socket, Socket)
    if first:
        await tool.connection.write(first)
    await join(tool.rest(), socket)


def _response(event: h11.Response, masks: Mapping[bytes, bytes]) -> h11.Response:
    # It is framed anew; a length beside chunks counts for nothing (RFC 9112, 6.3).
    drop = (b"content-length",) if _is_chunked(event) else ()
    headers = rewrite.mask_headers(rewrite.forward_headers(event.headers, drop), masks)
    reason = rewrite.mask_headers([(b"", bytes(event.reason))], masks)[0][1]
    return h11.Response(status_code=event.status_code, headers=headers, reason=reason)


def _is_chunked(message: h11.Request | h11.Response) -> bool:
    return any(name == b"transfer-encoding" for name, _ in message.headers)
