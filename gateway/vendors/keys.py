"""Of the credentials that a request to a vendor shows, which one is Loci's and which the vendor's. Pure.

Anthropic's clients know two headers, `authorization: Bearer` and `x-api-key`, and most set one of them: a key of Loci
or its password may stand in either, and a key of the caller's own at the vendor, known by its form, in the other.
"""

import re
from collections.abc import Mapping

from gateway.access.run_tokens import bearer_of

_PLACE = re.compile(r"/v1/(anthropic|zai)(/.*)?")
_KEYS = {
    "anthropic": re.compile(rb"sk-ant-[\w-]+"),
    "zai": re.compile(rb"[0-9a-f]{32}\.\w{8,64}"),
}


def vendor_of(path: str) -> str:
    """Returns the vendor whose API a path is of, in canonical form; empty for none."""
    match = _PLACE.fullmatch(path)
    return match[1] if match else ""


def for_loci(path: str, headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    """Returns the headers with what is meant for Loci as `authorization`; without it where the vendor's key is all
    there is.
    """
    vendor = vendor_of(path)
    if not vendor:
        return headers
    bearer = next((one for one in _shown(headers) if not _KEYS[vendor].fullmatch(one)), b"")
    rest = {name: value for name, value in headers.items() if name != b"authorization"}
    return {**rest, b"authorization": b"Bearer " + bearer} if bearer else rest


def own_key(vendor: str, headers: Mapping[bytes, bytes], password: str) -> str:
    """Returns the caller's key at the vendor; empty where none is shown. The server's password is none, whatever its
    form.
    """
    keys = (one for one in _shown(headers) if _KEYS[vendor].fullmatch(one) and one != password.encode())
    return next(keys, b"").decode("ascii")


def _shown(headers: Mapping[bytes, bytes]) -> list[bytes]:
    both = bearer_of(headers), headers.get(b"x-api-key", b"").strip()
    return [one for one in both if one]
