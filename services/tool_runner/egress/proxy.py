"""The HTTP proxy that a tool finds in its sandbox: each request, and each tunnel, is judged and sent on, or refused.

`http://` comes as absolute-form requests, `https://` as CONNECT. Within a tunnel, to a host without secrets, TLS
passes as it is, once it names that host; to a host with secrets it ends here, and is made anew to the host, so that the
secrets are put in on the way. What is not TLS within a tunnel is HTTP, or refused, but for the
hosts that the operator opens to any protocol. The host `loci` is Loci itself.

A refusal is a response 403 with a sentence. Within TLS that passes nothing can be said: an alert ends it.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import h11

from services.common.core.addresses import Address, AddressRefused
from services.tool_runner.core.job import MIB
from services.tool_runner.core.network_policy import LOCI, Policy, refusal
from services.tool_runner.core.ports import Connection
from services.tool_runner.egress import targets
from services.tool_runner.egress.certificates import Authority
from services.tool_runner.egress.destinations import Destinations, Origin, Unreachable
from services.tool_runner.egress.exchange import HEAD_SECONDS, KeptConnection, Peer, exchange
from services.tool_runner.egress.protocol import rewrite
from services.tool_runner.egress.protocol.client_hello import HANDSHAKE, names_only
from services.tool_runner.egress.protocol.placeholders import HeldSecret
from services.tool_runner.egress.protocol.rewrite import CannotBeSent, Outgoing
from services.tool_runner.egress.streams import MeteredStream, PrefixedStream, Socket, Tls, drain, join

_log = logging.getLogger(__name__)

MOST_CONNECTIONS = 64
# Names that one call has resolved at the same time; others have few threads for theirs.
_MOST_FINDING = 2
# What a connection may move when its call may no more: a request, and the answer that says so.
_LAST_BYTES = 256 * 1024
# A fatal alert, unrecognized_name (RFC 8446, 6.2).
_WRONG_NAME = bytes((0x15, 3, 3, 0, 2, 2, 112))


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one call's tunnel; sizes in bytes, times in seconds. `idle`: nothing moves on a connection."""

    bytes_per_call: int = 256 * MIB
    idle: float = 300.0
    connection: float = 3_900.0


@dataclass(frozen=True, slots=True)
class Call:
    """The rights of one call. `token`: its credential for Loci; "": none."""

    policy: Policy
    secrets: Sequence[HeldSecret] = ()
    token: str = field(default="", repr=False)


class Proxy:
    """ports.Tunnel for one call. `gateway_url`: where the host `loci` leads."""

    def __init__(
        self, call: Call, places: Destinations, authority: Authority, gateway_url: str, limits: Limits
    ) -> None:
        self._call = call
        self._places = places
        self._certificates = authority
        self._gateway = urlsplit(gateway_url)
        self._limits = limits
        self._finding = asyncio.Semaphore(_MOST_FINDING)
        self._open = 0
        self._moved = 0
        self.authority = authority.pem if call.secrets else ""

    async def serve(self, connection: Connection) -> None:
        """See ports.Tunnel."""
        self._open += 1
        try:
            try:
                await self._serve(connection)
            finally:
                self._open -= 1
            await drain(connection)
        finally:
            await connection.close()

    async def _serve(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        end, here = loop.time() + self._limits.connection, 0
        try:
            async with asyncio.timeout_at(min(end, loop.time() + self._limits.idle)) as idle:

                def moved(size: int) -> None:
                    nonlocal here
                    here += size
                    self._moved += size
                    if self._is_spent() and here > _LAST_BYTES:
                        raise ConnectionError("the call has moved as many bytes as it may")
                    if not idle.expired():
                        idle.reschedule(min(end, loop.time() + self._limits.idle))

                await self._requests(MeteredStream(connection, moved), None)
        except (OSError, h11.ProtocolError, TimeoutError):
            # It cannot be told any more: a response had begun, or nobody is there.
            pass
        except Exception:  # noqa: BLE001 - the supervisor of connections: none may end the call, or go unseen
            _log.exception("a tool's connection failed")

    async def _requests(self, connection: Connection, tunnel: Origin | None, world: Socket | None = None) -> None:
        """Serves requests to their end. `tunnel`: where the tunnel leads that they come in, perhaps over `world`."""
        tool, kept = Peer(h11.SERVER, connection), KeptConnection()
        if tunnel is not None and world is not None:
            kept.begin(tunnel, world)
        try:
            while (request := await tool.request()) is not None:
                try:
                    self._check_limits()
                    if request.method == b"CONNECT" and tunnel is None:
                        return await self._tunnel(tool, request)
                    await self._send_on(tool, request, tunnel, kept)
                except (AddressRefused, CannotBeSent) as refused:
                    await tool.answer(403, str(refused))
                except Unreachable as problem:
                    await tool.answer(502, str(problem))
                if not tool.goes_on():
                    return None
        finally:
            await kept.close()

    # Requests ---------------------------------------------------------------------------------------------

    async def _send_on(self, tool: Peer, request: h11.Request, tunnel: Origin | None, kept: KeptConnection) -> None:
        targets.check(request.method, request.headers)
        if tunnel is None:
            host, port, target = targets.absolute(request.target)
            origin = self._origin(host, port, tls=False)
        else:
            origin, target = tunnel, targets.within(request.target, request.headers, tunnel)
        outgoing = self._outgoing(origin, target, request)
        world = await kept.take(origin) or Peer(h11.CLIENT, await self._connect(origin))
        usable = False
        try:
            usable = await exchange(tool, request, world, outgoing)
        finally:
            await kept.put(origin, world, usable=usable)

    def _outgoing(self, origin: Origin, target: bytes, request: h11.Request) -> Outgoing:
        host = rewrite.authority(origin.host, origin.port, tls=origin.tls)
        headers = [(b"host", host), *rewrite.forward_headers(request.headers, (b"host",))]
        if origin.is_loci:
            return rewrite.for_loci(target, headers, self._call.token, self._gateway.path.rstrip("/"))
        held = self._secrets_of(origin)
        if not origin.tls and not targets.is_here(origin.host) and rewrite.would_replace(target, headers, held):
            raise AddressRefused(f"a secret is not sent in clear: use https://{origin.host}")
        return rewrite.with_secrets(target, headers, held)

    # Tunnels ----------------------------------------------------------------------------------------------

    async def _tunnel(self, tool: Peer, request: h11.Request) -> None:
        """Serves a CONNECT to its end. What cannot be reached is told before the tunnel stands."""
        origin = self._origin(*targets.authority(request.target), tls=False)
        addresses = await self._origin_of(origin)
        world = None
        if not origin.is_loci and not self._secrets_of(origin):
            world = await self._places.dial(addresses, origin)
        try:
            await tool.connection.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._within(tool.rest(), origin, world)
        finally:
            if world is not None:
                await world.close()

    async def _within(self, tool: PrefixedStream, origin: Origin, world: Socket | None) -> None:
        """Serves the bytes in a tunnel; `world`: where TLS passes as it is, or everything."""
        if origin.raw and world is not None:
            await join(tool, world)
        elif (await tool.peek())[:1] != bytes((HANDSHAKE,)):
            await self._requests(tool, origin, world)
        elif origin.is_loci:
            await tool.write(_WRONG_NAME)
        elif world is None:
            await self._within_tls(tool, Origin(origin.host, origin.port, tls=True, vouched=origin.vouched))
        elif await _names_only(tool, origin.host):
            await join(tool, world)
        else:
            await tool.write(_WRONG_NAME)

    async def _within_tls(self, tool: PrefixedStream, origin: Origin) -> None:
        inner = Tls(tool, self._certificates.context(origin.host))
        async with asyncio.timeout(HEAD_SECONDS):
            await inner.accept()
        try:
            await self._requests(inner, origin)
        finally:
            with suppress(OSError):
                await inner.end()

    # Places -----------------------------------------------------------------------------------------------

    async def _origin_of(self, origin: Origin) -> list[Address]:
        async with self._finding:
            return await self._places.find(origin)

    async def _connect(self, origin: Origin) -> Socket:
        return await self._places.dial(await self._origin_of(origin), origin)

    # Judging ----------------------------------------------------------------------------------------------

    def _origin(self, host: str, port: int, *, tls: bool) -> Origin:
        """Returns the origin of a host that the tool may reach. Raises Refused."""
        if host == LOCI:
            return self._loci(port)
        entry = self._call.policy.meaning(host, port)
        if entry is None:
            raise AddressRefused(refusal(host, port))
        return Origin(host, port, tls, vouched=entry.vouched, raw=entry.raw)

    def _loci(self, port: int) -> Origin:
        if port != 80:
            raise AddressRefused("Loci is http://loci, at no other port and not https://")
        if not self._call.token or not self._gateway.hostname:
            raise AddressRefused("this call may not call Loci: only a tool that an agent calls in a run may")
        tls = self._gateway.scheme == "https"
        return Origin(self._gateway.hostname, self._gateway.port or (443 if tls else 80), tls, is_loci=True)

    def _secrets_of(self, origin: Origin) -> list[HeldSecret]:
        return [secret for secret in self._call.secrets if secret.rule.goes_to(origin.host, origin.port)]

    def _is_spent(self) -> bool:
        return self._moved > self._limits.bytes_per_call

    def _check_limits(self) -> None:
        if self._open > MOST_CONNECTIONS:
            raise AddressRefused(f"a call may have {MOST_CONNECTIONS} connections at once")
        if self._is_spent():
            raise AddressRefused(
                f"this call has sent and received {self._limits.bytes_per_call // MIB} MiB, and may no more"
            )


async def _names_only(tool: PrefixedStream, host: str) -> bool:
    """Returns whether the TLS that begins here asks for `host`, or for no name."""
    async with asyncio.timeout(HEAD_SECONDS):
        data = await tool.peek()
        while (answer := names_only(data, host)) is None:
            more = await tool.peek(len(data) + 1)
            if len(more) == len(data):
                return False
            data = more
    return answer
