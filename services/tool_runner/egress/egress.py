"""The tool runner's way out: one per process, which makes a tunnel for each call."""

import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.common.core.private_hosts import Private
from services.tool_runner.core import network_policy as policies
from services.tool_runner.core.network_policy import Host, Policy
from services.tool_runner.core.ports import Tunnel
from services.tool_runner.egress.certificates import Authority
from services.tool_runner.egress.destinations import Destinations
from services.tool_runner.egress.protocol.placeholders import HeldSecret
from services.tool_runner.egress.proxy import Call, Limits, Proxy


@dataclass(frozen=True, slots=True)
class EgressSettings:
    """The operator's settings of the way out."""

    # Hosts that every tool may reach.
    hosts: tuple[Host, ...] = ()
    # Whether tools may be let to private addresses, this machine's included.
    allow_private: Private = False
    # Where the name `loci` leads; "": nowhere.
    gateway_url: str = ""
    # Addresses (host, port) of Loci's own parts: never reached, whoever allows it.
    own: tuple[tuple[str, int], ...] = ()
    limits: Limits = field(default_factory=Limits)


class Egress:
    """Makes tunnels. `trusted`: for TLS to the world; by default the usual authorities, or those of SSL_CERT_FILE."""

    def __init__(self, settings: EgressSettings, *, trusted: ssl.SSLContext | None = None) -> None:
        self._settings = settings
        self._places = Destinations(allow_private=settings.allow_private, own=settings.own, trusted=trusted)
        self._authority = Authority()

    def policy_of(self, network: str) -> Policy:
        """Returns a tool's `network` and the operator's hosts. Raises Refused (NETWORK_INVALID)."""
        return policies.parse(network).with_allowed(self._settings.hosts)

    def tunnel(self, policy: Policy, secrets: Sequence[HeldSecret] = (), client_token: str = "") -> Tunnel:
        """Returns the way out of one call: `policy_of` its tool, the secrets that `secrets.split` held back, its token.

        What is not allowed is refused with a sentence that says how to allow it; so a tunnel helps those, too, that
        may reach nothing.
        """
        call = Call(policy, secrets, client_token)
        return Proxy(call, self._places, self._authority, self._settings.gateway_url, self._settings.limits)
