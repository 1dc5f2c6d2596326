"""The hosts that a tool may reach, and the secrets that are put into its requests on the way. Pure.

The JSON of a tool's `network`, all of it optional:

    {"allow": ["api.example.com", "*.example.org", "git.example.com:8443", "*"],
     "secrets": {"API_KEY": {"hosts": ["api.example.com"], "header": "Authorization", "format": "Bearer {}"}}}

A host is a name, `*.` and a name (every host below it), an address, or `*` (every public host). Without a port it
stands for ports 80 and 443. A secret is a variable of the call's environment; its hosts may be reached without being
named twice.
"""

import ipaddress
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.common.core.refusals import Refused

REASON = "NETWORK_INVALID"
DEFAULT_PORTS = (80, 443)
# The name that leads to Loci itself; see proxy.py.
LOCI = "loci"

_MOST_TEXT = 32 * 1024
_MOST_HOSTS = 100
_MOST_SECRETS = 50
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
# What resolvers read as a number: 2130706433, 0x7f.1, 0177.0.0.1. None is the name of a host.
_NUMBER = re.compile(r"(.*\.)?(\d+|0x[0-9a-f]*)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_FORMAT = re.compile(r"[\x20-\x7e]{1,200}")
# Those that frame or route a request.
_KEPT_HEADERS = frozenset(
    ("connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)


@dataclass(frozen=True, slots=True)
class Host:
    """One entry of a list: `name` is canonical, `*`, or begins with `*.`; no port means the usual two."""

    name: str
    port: int | None = None
    # Whether it may be at a private address: the operator names it, in so many words.
    vouched: bool = False
    # Whether a tunnel to it may carry anything, and not HTTP and TLS alone.
    raw: bool = False

    def covers(self, host: str, port: int) -> bool:
        """Returns whether a canonical host and a port are meant."""
        if port not in (DEFAULT_PORTS if self.port is None else (self.port,)):
            return False
        return self.name in {"*", host} or (self.name.startswith("*.") and host.endswith(self.name[1:]))


@dataclass(frozen=True, slots=True)
class Secret:
    """A variable whose value goes to `hosts` alone: for its placeholder, and as `header` where one is named."""

    hosts: tuple[Host, ...]
    header: str = ""
    format: str = "{}"

    def goes_to(self, host: str, port: int) -> bool:
        """Returns whether a host is one of its own."""
        return any(own.covers(host, port) for own in self.hosts)


@dataclass(frozen=True, slots=True)
class Policy:
    """The hosts that one call may reach. `secrets` by the name of their variable."""

    allow: tuple[Host, ...] = ()
    secrets: Mapping[str, Secret] = ()  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "secrets", dict(self.secrets))

    def with_allowed(self, hosts: Sequence[Host]) -> "Policy":
        """Returns the policy with further hosts."""
        return Policy((*self.allow, *hosts), self.secrets)

    def meaning(self, host: str, port: int) -> Host | None:
        """Returns the entry that allows a canonical host and port, the one that allows most; None for none."""
        entries = (*self.allow, *(own for secret in self.secrets.values() for own in secret.hosts))
        covering = [entry for entry in entries if entry.covers(host, port)]
        return max(covering, key=lambda entry: (entry.raw, entry.vouched), default=None)


NOTHING = Policy()


def parse(text: str) -> Policy:
    """Returns the policy in a tool's `network`; "" is none. Raises Refused (NETWORK_INVALID), naming the member."""
    if not text:
        return NOTHING
    if len(text) > _MOST_TEXT:
        raise _refusal("network", f"is longer than {_MOST_TEXT} characters")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise _refusal("network", "is not JSON") from None
    members = _members(value, "network", {"allow", "secrets"})
    secrets = members.get("secrets", {})
    if not isinstance(secrets, dict) or len(secrets) > _MOST_SECRETS:
        raise _refusal("network.secrets", f"must be an object with at most {_MOST_SECRETS} members")
    return Policy(
        _hosts(members.get("allow", []), "network.allow"),
        {name: _secret(name, secret) for name, secret in secrets.items()},
    )


def parse_hosts(text: str) -> tuple[Host, ...]:
    """Returns the operator's hosts, separated by commas. Raises ValueError with a sentence."""
    try:
        hosts = [_host(part.strip(), "an entry") for part in text.split(",") if part.strip()]
    except Refused as refused:
        raise ValueError(refused.message) from None
    return tuple(Host(host.name, host.port, vouched=not host.name.startswith("*")) for host in hosts)


def parse_tcp(text: str) -> tuple[Host, ...]:
    """Returns the operator's hosts that programs reach by TCP, separated by commas. Raises ValueError with a sentence.

    Programs find them under their names, at addresses of their own sandbox; it cannot have an address of elsewhere.
    """
    hosts = []
    for host in parse_hosts(text):
        if host.port is None or host.port < 1024:
            raise ValueError(f"{host.name}: name its port, as in db.internal:5432; ports below 1024 are not for this")
        if host.name.startswith("*"):
            raise ValueError(f"{host.name}: a program asks for one host; name each")
        if _is_elsewhere(host.name):
            raise ValueError(f"{host.name} is an address; give it a name in this machine's /etc/hosts, and write that")
        hosts.append(Host(host.name, host.port, vouched=True, raw=True))
    return tuple(hosts)


def _is_elsewhere(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.version == 6 or not address.is_loopback


def canonical(host: str) -> str | None:
    """Returns a host for comparing: a name in lower case without a last dot, an address in its shortest form."""
    host = host.lower()
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]").partition("%")[0]))
    except ValueError:
        name = host.removesuffix(".")
        return name if _NAME.fullmatch(name) and not _NUMBER.fullmatch(name) else None


def refusal(host: str, port: int) -> str:
    """Returns the sentence for a host that is not allowed."""
    host_text = f"[{host}]" if ":" in host else host
    entry = json.dumps(host_text if port in DEFAULT_PORTS else f"{host_text}:{port}")
    return f'this tool may not reach {host_text}:{port}; to allow it, set the tool\'s network to {{"allow": [{entry}]}}'


def _secret(name: str, value: Any) -> Secret:
    where = f"network.secrets.{name[:80]}"
    if not _VARIABLE.fullmatch(name):
        raise _refusal(where, "is not the name of an environment variable")
    members = _members(value, where, {"hosts", "header", "format"})
    hosts = _hosts(members.get("hosts", []), f"{where}.hosts")
    if not hosts or any(host.name == "*" for host in hosts):
        raise _refusal(f"{where}.hosts", "must name the hosts that the secret is for")
    header, form = members.get("header", ""), members.get("format", "{}")
    if not isinstance(header, str) or (header and not _may_be_set(header)):
        raise _refusal(f"{where}.header", "is not the name of a header that may be set")
    if not isinstance(form, str) or not _FORMAT.fullmatch(form) or form.count("{}") != 1:
        raise _refusal(f"{where}.format", 'must be printable text with one {}, for example "Bearer {}"')
    if "format" in members and not header:
        raise _refusal(f"{where}.format", "needs a header")
    return Secret(hosts, header.lower(), form)


def _may_be_set(header: str) -> bool:
    name = header.lower()
    return bool(_HEADER.fullmatch(header)) and name not in _KEPT_HEADERS and not name.startswith("proxy-")


def _members(value: Any, where: str, allowed: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _refusal(where, "must be an object")
    for name in value:
        if name not in allowed:
            raise _refusal(f"{where}.{name[:80]}", f"is not known; there are {' and '.join(sorted(allowed))}")
    return value


def _hosts(value: Any, where: str) -> tuple[Host, ...]:
    if not isinstance(value, list) or len(value) > _MOST_HOSTS:
        raise _refusal(where, f"must be a list of at most {_MOST_HOSTS} hosts")
    return tuple(_host(one, f"{where}[{place}]") for place, one in enumerate(value))


def _host(value: Any, where: str) -> Host:
    if not isinstance(value, str):
        raise _refusal(where, 'must be text, for example "api.example.com"')
    text, port = _split_port(value.strip())
    name = text if text == "*" else canonical(text.removeprefix("*."))
    if name is None or (text.startswith("*.") and ":" in name):
        hint = "a name, *. and a name, an address, or *, perhaps with :port; without https:// and a path"
        raise _refusal(where, f"{value[:80]!r} is not a host: write {hint}")
    if port is not None and not 0 < port < 65_536:
        raise _refusal(where, f"{port} is not a port")
    if name == LOCI:
        raise _refusal(where, f"{LOCI!r} stands for Loci itself, which needs no permission")
    return Host(f"*.{name}" if text.startswith("*.") else name, port)


def _split_port(text: str) -> tuple[str, int | None]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or (":" in host and host[:1] != "["):
        return text, None
    return host, int(port)


def _refusal(where: str, problem: str) -> Refused:
    return Refused(REASON, f"{where} {problem}")
