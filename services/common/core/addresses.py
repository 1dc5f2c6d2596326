"""The addresses of the open internet, and those that nobody may call. Pure."""

import ipaddress
import re
import socket

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# The setting by which an operator allows those that are not.
ALLOW = "LOCI_ALLOW_PRIVATE_URLS"

# What is not the open internet, by IANA's registries of special-purpose addresses (RFC 6890). Not `is_global`, whose
# answers differ between releases of Python.
_SPECIAL_RANGES = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
"""
_SPECIAL = [ipaddress.IPv4Network(network) for network in _SPECIAL_RANGES.split()]
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_SPECIAL_UNICAST = [ipaddress.IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20")]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

# Where clouds tell a machine its identity and its keys, and the neighbours of a link, among whom they do so.
_METADATA = [
    ipaddress.ip_network(network)
    for network in (
        "169.254.0.0/16",  # AWS, Google, Azure and most others
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's platform
        "192.0.0.192/32",  # Oracle
        "fe80::/10",
        "fd00:ec2::/32",  # AWS
        "fd20:ce::/32",  # Google
    )
]
# An IPv4 address in the spellings of inet_aton(3): fewer parts, octal, hexadecimal.
_IPV4_SPELLING = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}\.?", re.IGNORECASE)


class AddressRefused(Exception):
    """The address is not one that may be called; the text is a sentence for whoever supplied it."""


def is_public(address: Address) -> bool:
    """Returns whether an address is one of the open internet, also when it is written within another (RFC 4291, 3056,
    6052).
    """
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL)
    inner = _embedded_ipv4(address)
    if inner is not None:
        return is_public(inner)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_UNICAST)


def is_metadata(address: Address) -> bool:
    """Returns whether an address is one of a cloud's metadata, or link-local: whatever is allowed, those are not."""
    return any(unmap(address) in network for network in _METADATA)


def literal_address(host: str) -> Address | None:
    """Returns the address that a host is in any spelling that a resolver understands (127.1, 0x7f000001), or None for a
    name.
    """
    text = host.strip("[]").partition("%")[0]
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    if not _IPV4_SPELLING.fullmatch(text):
        return None
    try:
        return ipaddress.IPv4Address(socket.inet_aton(text.rstrip(".")))
    except OSError:
        return None


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address that a mapped, 6to4 or NAT64 address stands for."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def unmap(address: Address) -> Address:
    """Returns the IPv4 address where it is written within an IPv6 one."""
    return (_embedded_ipv4(address) or address) if isinstance(address, ipaddress.IPv6Address) else address
