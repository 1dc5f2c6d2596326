"""Whether an address is that of one of Loci's own parts: nobody is led to those by an address that a user supplies."""

import socket
from collections.abc import Sequence

from services.common.core.addresses import Address, AddressRefused, unmap
from services.common.dns import resolve


async def is_own(places: Sequence[tuple[str, int]], address: Address, port: int) -> bool:
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
