"""The check that keeps websites out where nobody is asked for a credential.

Browsers let every page send requests to every host.

A page can do so in two ways. It asks across origins, which its browser says in `Origin`; or it has its own name resolve
to our address, and then the name stands in `Host`. Whoever shows a credential that opens something is let in from
anywhere: a page does not have it. Pure.
"""

import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from services.common.errors import PermissionDenied

# Browsers read with these, and the answers are kept from other origins.
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_REASON = "ORIGIN_NOT_ALLOWED"


class OriginCheck:
    """Judges requests that show nothing. hosts: names by which we are reached, beside addresses and `localhost`.
    origins: of pages that are let in, beside our own.
    """

    def __init__(self, hosts: Collection[str] = (), origins: Collection[str] = ()) -> None:
        self._hosts = frozenset(map(_name, hosts))
        self._origins = frozenset(origin.lower() for origin in origins)

    def check(self, method: str, headers: Mapping[bytes, bytes]) -> None:
        """Raises PermissionDenied (ORIGIN_NOT_ALLOWED)."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = _name(_hostname(f"//{host}"))
        if host and name not in self._hosts and not _is_no_page(name):
            sentence = f"nobody may come to {host[:200]} without a credential; name the host in LOCI_ALLOWED_HOSTS"
            raise PermissionDenied(sentence, reason=_REASON)
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if method in _SAFE or not origin or origin in self._origins:
            return
        # With the port: another program of this machine may serve pages there.
        if origin not in (f"http://{host}", f"https://{host}"):
            sentence = f"pages of {origin[:200]} may not do this without a credential; name it in LOCI_CORS_ORIGINS"
            raise PermissionDenied(sentence, reason=_REASON)


def _is_no_page(name: str) -> bool:
    """Returns whether a host cannot be the name of somebody's website.

    A name without a dot can: the search list of a resolver, or a network's own DNS, completes it.
    """
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _hostname(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _name(host: str) -> str:
    return host.strip().lower().rstrip(".")
