"""Addresses that are not public and may be called all the same: all, none, or those of hosts with a name. Pure."""

from dataclasses import dataclass

from services.common.core.addresses import ALLOW

# The setting by which an operator names hosts.
NAME = "LOCI_ALLOW_PRIVATE_HOSTS"


@dataclass(frozen=True, slots=True)
class PrivateHosts:
    """everywhere: all may be called. hosts: (name, port) that may be, also by http; no port means every port.

    A name is canonical, or begins with `*.`. No name leads to a part of Loci: see `own_places`.
    """

    everywhere: bool = False
    hosts: tuple[tuple[str, int | None], ...] = ()

    def names(self, host: str, port: int) -> bool:
        """Returns whether the operator names a host."""
        host = host.lower().rstrip(".").strip("[]")
        return any(own_port in (None, port) and _covers(name, host) for name, own_port in self.hosts)


Private = bool | PrivateHosts


def allows_all(private: Private) -> bool:
    """Returns whether every private address may be called."""
    return private if isinstance(private, bool) else private.everywhere


def names(private: Private, host: str, port: int) -> bool:
    """Returns whether the operator names a host."""
    return not isinstance(private, bool) and private.names(host, port)


def advice(private: Private, host: str, port: int) -> str:
    """Returns what to set to reach a host."""
    if isinstance(private, bool):
        return f"set {ALLOW}=1 on the server to allow it"
    return f"set {NAME}={host}:{port} on the server to allow it, or {ALLOW}=1 to allow all"


def _covers(name: str, host: str) -> bool:
    return name == host or (name.startswith("*.") and host.endswith(name[1:]))
