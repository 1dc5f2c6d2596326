"""Requests of the program git: where they lead, their bodies, and the key they show as a password."""

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from typing import NamedTuple

PREFIX = "/v1/git/"
UPLOAD, RECEIVE = "git-upload-pack", "git-receive-pack"
# The scheme by which git is asked for a password.
CHALLENGE = 'Basic realm="Loci"'
# A pack at its largest, and the lines before it.
_MOST_BYTES = 17 * 1024 * 1024
_ADDRESS = re.compile(rf"([^/]+)/[^/]+\.git/(info/refs|{UPLOAD}|{RECEIVE})")


class BadRequest(Exception):
    """A request that is none of git's, or is not served; its text says why."""


class Address(NamedTuple):
    """The target of a path: `info/refs` or a service, of an agent."""

    agent_id: str
    what: str


def address_of(path: str) -> Address | None:
    """`path`: below PREFIX. None: nothing of git's."""
    match = _ADDRESS.fullmatch(path)
    return Address(match[1], match[2]) if match else None


def with_bearer(path: str, headers: Mapping[bytes, bytes]) -> Mapping[bytes, bytes]:
    """Headers in which the password that git sends is the bearer, on its own routes; elsewhere as they are."""
    scheme, _, encoded = headers.get(b"authorization", b"").partition(b" ")
    if not path.startswith(PREFIX) or scheme.lower() != b"basic":
        return headers
    try:
        _, _, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        password = b""
    return {**headers, b"authorization": b"Bearer " + password}


def unpacked(body: bytes, encoding: str) -> bytes:
    """Returns a body as it was before `content-encoding`. Raises BadRequest."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise BadRequest(f"bodies come plain or as gzip, not as {encoding[:40]!r}")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        data = unpacking.decompress(body, _MOST_BYTES)
    except zlib.error:
        raise BadRequest("the body is not gzip, as its header says") from None
    if unpacking.unconsumed_tail:
        raise BadRequest(f"the body is larger than {_MOST_BYTES // 2**20} MiB, unpacked")
    if not unpacking.eof:
        raise BadRequest("the body ends in the middle")
    return data
