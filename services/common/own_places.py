"""Where parts of Loci are, and what they use. No address that somebody supplies leads there, whatever is allowed.

A process learns its own at its start, so that providers, MCP servers, pages and callbacks are judged alike.
"""

import re
import socket
from collections.abc import Sequence

from services.common.core.addresses import Address, AddressRefused, unmap
from services.common.dns import resolve
from services.common.settings import Env

# What names a part, in any service.
_SETTINGS = (
    "LOCI_LISTEN",
    "LOCI_AGENT_EXTERNAL_LISTEN",
    "LOCI_GATEWAY_URL",
    "LOCI_AGENT_ADDR",
    "LOCI_MEMORY_ADDR",
    "LOCI_LLM_GATEWAY_ADDR",
    "LOCI_TOOL_RUNNER_ADDR",
    "LOCI_DATABASE_URL",
    "LOCI_DATABASE_DIRECT_URL",
    "DOCKER_HOST",
)
_PORTS = {"http": 80, "https": 443, "postgres": 5432, "postgresql": 5432, "tcp": 2375}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:@]+)(?::(\d{1,5}))?", re.IGNORECASE)

Place = tuple[str, int]


class OwnPlaces:
    """Hosts and ports of Loci's parts."""

    def __init__(self, places: Sequence[Place] = ()) -> None:
        self._places = tuple(places)

    def learn(self, places: Sequence[Place]) -> None:
        """Adds some."""
        self._places = tuple(dict.fromkeys((*self._places, *places)))

    async def hold(self, address: Address, port: int) -> bool:
        """Returns whether a part of Loci is there."""
        return await is_own(self._places, address, port)

    async def check(self, host: str, address: Address, port: int) -> None:
        """Raises AddressRefused where a part of Loci is at the address of a host."""
        if await self.hold(address, port):
            raise AddressRefused(f"{host}:{port} is a part of Loci, which nobody may call")


# Of this process.
OWN = OwnPlaces()


def places_of(env: Env) -> list[Place]:
    """Returns the places that an environment names."""
    return [place for name in _SETTINGS for place in places_in(env.text(name, default=""))]


def places_in(address: str) -> list[Place]:
    """Hosts and ports in the address of a service: a URL of HTTP or Postgres, dns:///host:port, host:port."""
    scheme, _, rest = address.rpartition("://")
    if scheme.startswith("unix"):
        return []
    places = []
    for part in rest.lstrip("/").partition("/")[0].rpartition("@")[2].split(","):
        match = _AUTHORITY.fullmatch(part)
        port = match[2] if match and match[2] else _PORTS.get(scheme)
        if match and port:
            places.append((match[1].strip("[]"), int(port)))
    return places


async def is_own(places: Sequence[Place], address: Address, port: int) -> bool:
    """Returns whether an address and a port are of one of these hosts and ports."""
    address = unmap(address)
    for host, own_port in places:
        if own_port == port:
            parts = await _resolve(host)
            if address in parts or (_is_here(address) and any(map(_is_here, parts))):
                return True
    return False


async def _resolve(host: str) -> list[Address]:
    try:
        return [unmap(address) for address in await resolve(host)]
    except AddressRefused:
        return []


def _is_here(address: Address) -> bool:
    """Returns whether an address is one of this machine: only those can be bound."""
    if address.is_loopback or address.is_unspecified:
        return True
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True
