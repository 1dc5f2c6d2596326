"""The addresses of the open internet. Pure."""

import ipaddress

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


def _embedded_ipv4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Returns the IPv4 address that a mapped, 6to4 or NAT64 address stands for."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def unmap(address: Address) -> Address:
    """Returns the IPv4 address where it is written within an IPv6 one."""
    return (_embedded_ipv4(address) or address) if isinstance(address, ipaddress.IPv6Address) else address
