"""From a host that is allowed to a connection: every address it has is checked, and one of those is connected to.

So whoever answers a question for a name differently the next time gains nothing. What no policy allows: addresses of
the cloud's metadata, and Loci's own parts.
"""

import asyncio
import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from services.common.core.addresses import Address, AddressRefused, is_metadata, is_public, unmap
from services.common.core.private_hosts import Private, advice, allows_all, names
from services.common.dns import resolve
from services.common.own_places import OwnPlaces
from services.tool_runner.egress.streams import Socket

_MOST_TRIED = 4
_CONNECT_SECONDS = 15.0
_RESOLVE_SECONDS = 10.0
# Nobody's: this network, multicast and what is reserved.
_NOBODYS = [ipaddress.ip_network(network) for network in ("0.0.0.0/8", "224.0.0.0/3", "::/128", "ff00::/8")]


class Unreachable(Exception):
    """The host may be called and cannot be; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The target of requests. `vouched`: the operator names it, it may be private; `is_loci`: it is our gateway.

    raw: a tunnel to it may carry anything.
    """

    host: str
    port: int
    tls: bool
    vouched: bool = False
    is_loci: bool = False
    raw: bool = False


class Destinations:
    """Resolves, checks and connects. `own`: hosts and ports of Loci's parts."""

    def __init__(
        self, *, allow_private: Private, own: Sequence[tuple[str, int]], trusted: ssl.SSLContext | None = None
    ) -> None:
        self._allow_private = allow_private
        self._own = OwnPlaces(own)
        self._trusted = trusted

    async def find(self, origin: Origin) -> list[Address]:
        """Returns the addresses of a host that the tool's policy allows. Raises Refused, Unreachable."""
        host, port = origin.host, origin.port
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                addresses = await resolve(host)
        except AddressRefused as missing:
            raise Unreachable(str(missing)) from None
        except TimeoutError:
            raise Unreachable(f"{host} was not resolved within {_RESOLVE_SECONDS:g} s") from None
        for address in () if origin.is_loci else addresses:
            if is_metadata(address) or any(unmap(address) in network for network in _NOBODYS):
                raise AddressRefused(f"{host} is at {address}, which no tool may reach")
            if not (self._may_be_private(origin) or is_public(address)):
                raise AddressRefused(f"{host} is not at a public address; {advice(self._allow_private, host, port)}")
            if await self._own.hold(address, port):
                raise AddressRefused(f"{host}:{port} is a part of Loci, which tools reach as http://loci")
        return addresses[:_MOST_TRIED]

    async def dial(self, addresses: Sequence[Address], origin: Origin) -> Socket:
        """Connects to the first address that answers, over TLS where the origin says so. Raises Unreachable."""
        problem = "it has no address"
        for address in addresses:
            try:
                return await self._connect(str(address), origin)
            except TimeoutError:
                problem = f"no answer within {_CONNECT_SECONDS:g} s"
            except ssl.SSLCertVerificationError as error:
                problem = f"its certificate is not trusted: {error.verify_message}"
            except OSError as error:
                problem = error.strerror or str(error) or type(error).__name__
        raise Unreachable(f"{origin.host}:{origin.port} cannot be reached: {problem}")

    async def _connect(self, address: str, origin: Origin) -> Socket:
        name = origin.host if origin.tls else None
        async with asyncio.timeout(_CONNECT_SECONDS):
            streams = await asyncio.open_connection(
                address, origin.port, ssl=self._context() if origin.tls else None, server_hostname=name
            )
        return Socket(*streams)

    def _context(self) -> ssl.SSLContext:
        if self._trusted is None:
            # The usual authorities, or those of SSL_CERT_FILE; made once, because that takes 20 ms.
            self._trusted = ssl.create_default_context()
        return self._trusted

    def _may_be_private(self, origin: Origin) -> bool:
        return origin.vouched or allows_all(self._allow_private) or names(self._allow_private, origin.host, origin.port)
