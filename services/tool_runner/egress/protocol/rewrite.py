"""Changes of the proxy to requests and responses: headers of one hop, secrets, credentials of Loci. Pure."""

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from services.tool_runner.core.network_policy import DEFAULT_PORTS
from services.tool_runner.egress.protocol.placeholders import PREFIX, HeldSecret

Headers = list[tuple[bytes, bytes]]

# Of one hop (RFC 9110, 7.6.1); h11 frames messages anew.
_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_FRAMING = frozenset((b"content-length", b"host", b"expect"))
# Whatever else says who calls Loci, or from where.
_IDENTITY = frozenset((b"authorization", b"x-bare-password", b"user_id", b"forwarded", b"cookie"))
_IDENTITY_PREFIXES = (b"x-loci-", b"x-forwarded-")
_PLACEHOLDER = PREFIX.encode()
# Shorter values are not masked: they would be found where they are not meant.
_LEAST_MASKED = 6
_DOTS = re.compile(r"(^|/)(\.|%2e){1,2}(/|$)", re.IGNORECASE)


class CannotBeSent(Exception):
    """The request cannot be sent as it is meant; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request with its secrets in it. `masks`: what may come back, and what is shown instead."""

    target: bytes
    headers: Headers
    masks: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)


def authority(host: str, port: int, *, tls: bool) -> bytes:
    """Returns the Host header of an origin."""
    address = f"[{host}]" if ":" in host else host
    return (address if port == DEFAULT_PORTS[tls] else f"{address}:{port}").encode()


def forward_headers(headers: Iterable[tuple[bytes, bytes]], drop: Collection[bytes] = ()) -> Headers:
    """Headers without those of one hop, those that `Connection` names, and `drop`; names in lower case."""
    pairs = [(name.lower(), value) for name, value in headers]
    named = {token.strip().lower() for name, value in pairs if name == b"connection" for token in value.split(b",")}
    gone = _HOP | (named - _FRAMING) | set(drop)
    return [(name, value) for name, value in pairs if name not in gone]


def is_websocket(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Returns whether a message asks for, or grants, the one upgrade that is passed on."""
    return any(name.lower() == b"upgrade" and value.strip().lower() == b"websocket" for name, value in headers)


def for_loci(target: bytes, headers: Headers, token: str, base_path: str) -> Outgoing:
    """Returns a request to Loci itself: whoever the tool says it is, it is the run of `token`. Raises CannotBeSent."""
    path = target.partition(b"?")[0].decode("latin-1")
    if _DOTS.search(path):
        raise CannotBeSent("a path to Loci must not hold . or .. segments")
    kept = [
        (name, value) for name, value in headers if name not in _IDENTITY and not name.startswith(_IDENTITY_PREFIXES)
    ]
    return Outgoing(base_path.encode() + target, [*kept, (b"authorization", f"Bearer {token}".encode())])


def with_secrets(target: bytes, headers: Headers, secrets: Sequence[HeldSecret]) -> Outgoing:
    """Returns a request to a host of the secrets `held`. Raises CannotBeSent."""
    masks: dict[bytes, bytes] = {}
    values = [(secret, _value(secret)) for secret in secrets]
    for secret, value in values:
        for form in (value, quote(value, safe="").encode(), quote(value).encode()):
            masks[form] = secret.placeholder.encode()
    pairs = [(name, _replace(name, value, values, masks)) for name, value in headers]
    for secret, value in values:
        if secret.rule.header:
            name = secret.rule.header.encode()
            text = secret.rule.format.replace("{}", value.decode("latin-1")).encode("latin-1")
            pairs = [*((other, kept) for other, kept in pairs if other != name), (name, text)]
    for secret, value in values:
        target = target.replace(secret.placeholder.encode(), quote(value, safe=":").encode())
    return Outgoing(target, pairs, {value: shown for value, shown in masks.items() if len(value) >= _LEAST_MASKED})


def mask_headers(headers: Iterable[tuple[bytes, bytes]], masks: Mapping[bytes, bytes]) -> Headers:
    """Headers of a response, with the tool's placeholders for what is secret. Bodies are not looked into."""
    shown = []
    for name, value in headers:
        for secret, placeholder in masks.items():
            value = value.replace(secret, placeholder)
        shown.append((name, value))
    return shown


def would_replace(target: bytes, headers: Iterable[tuple[bytes, bytes]], secrets: Sequence[HeldSecret]) -> bool:
    """Returns whether a request would have one of the secrets put in."""
    texts = [target, *(_decode(name, value)[1] for name, value in headers)]
    return any(secret.rule.header or secret.placeholder.encode() in text for secret in secrets for text in texts)


def _value(secret: HeldSecret) -> bytes:
    # Values are often read from files, with a last line break.
    value = secret.value.strip().encode()
    if any(byte < 32 or byte == 127 for byte in value):
        raise CannotBeSent("a secret with line breaks or control characters cannot be sent in a header")
    return value


def _replace(name: bytes, pairs: bytes, values: Sequence[tuple[HeldSecret, bytes]], masks: dict[bytes, bytes]) -> bytes:
    scheme, text = _decode(name, pairs)
    if _PLACEHOLDER not in text:
        return pairs
    for secret, value in values:
        text = text.replace(secret.placeholder.encode(), value)
    if not scheme:
        return text
    encoded = base64.b64encode(text)
    masks[encoded] = pairs.partition(b" ")[2].strip()
    return scheme + b" " + encoded


def _decode(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Returns scheme and decoded text of Basic credentials; for other headers "" and the value as it is."""
    scheme, _, encoded = value.partition(b" ")
    if name.lower() in {b"authorization", b"proxy-authorization"} and scheme.lower() == b"basic":
        try:
            return scheme, base64.b64decode(encoded.strip(), validate=True)
        except binascii.Error:
            pass
    return b"", value
