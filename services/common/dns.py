"""The addresses of a host name."""

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from services.common.core.addresses import Address, AddressRefused

# Names of users are resolved apart: one that never answers holds its thread for half a minute, and would keep from
# their work all who use the common ones.
_RESOLVING = ThreadPoolExecutor(64, "resolving")


async def resolve(host: str) -> list[Address]:
    """Returns the addresses of a name, each once. Raises AddressRefused when it has none."""
    try:
        asking = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
        addresses = await asyncio.get_running_loop().run_in_executor(_RESOLVING, asking)
    except (OSError, UnicodeError):
        raise AddressRefused(f"{host} cannot be resolved") from None
    return list(dict.fromkeys(ipaddress.ip_address(str(sockaddr[0]).partition("%")[0]) for *_, sockaddr in addresses))
