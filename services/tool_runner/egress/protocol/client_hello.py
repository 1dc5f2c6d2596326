"""The greeting of a TLS client, before anything is secret: the name it wants (RFC 8446, 4.1.2; RFC 6066, 3). Pure."""

from services.tool_runner.core.network_policy import canonical

MOST_BYTES = 64 * 1024
# The first byte of a TLS connection.
HANDSHAKE = 0x16

# A client splits its hello in a few, if at all; it is looked at anew with every byte that comes.
_MOST_RECORDS = 64
_CLIENT_HELLO = 1
_SERVER_NAME, _ENCRYPTED_CLIENT_HELLO = 0, 0xFE0D


class NotTls(Exception):
    """These bytes do not begin a TLS connection."""


def server_name(data: bytes) -> str | None:
    """Returns the name in the ClientHello that `data` begins with, "" where it gives none; None: more bytes are needed.

    Raises NotTls. A name that is hidden (Encrypted Client Hello) is refused the same way.
    """
    hello = _hello(data)
    if hello is None:
        return None
    try:
        # Past the version and the random bytes; then session id, cipher suites, compression methods.
        rest = hello[34:]
        for length_bytes in (1, 2, 1):
            rest = _vector(rest, length_bytes)[1]
        return _name(_vector(rest, 2)[0]) if rest else ""
    except IndexError:
        raise NotTls from None


def names_only(data: bytes, host: str) -> bool | None:
    """Returns whether TLS that begins so is for `host`, a canonical one, or for no name; None: more is needed."""
    try:
        name = server_name(data)
    except NotTls:
        return False
    if name is None:
        return False if len(data) > MOST_BYTES else None
    return not name or canonical(name) == host


def _hello(data: bytes) -> bytes | None:
    """Returns the body of the first handshake message, put together from its records."""
    message, place, records = bytearray(), 0, 0
    while len(data) - place >= 5:
        size = int.from_bytes(data[place + 3 : place + 5], "big")
        if data[place] != HANDSHAKE or data[place + 1] != 3 or not 0 < size <= 16_384 or records == _MOST_RECORDS:
            raise NotTls
        message += data[place + 5 : place + 5 + size]
        place, records = place + 5 + size, records + 1
        if message and message[0] != _CLIENT_HELLO:
            raise NotTls
        if len(message) >= 4 and len(message) - 4 >= (length := int.from_bytes(message[1:4], "big")):
            return bytes(message[4 : 4 + length])
    if len(data) > place and data[place] != HANDSHAKE:
        raise NotTls
    return None


def _name(extensions: bytes) -> str:
    server_name = ""
    while extensions:
        kind = int.from_bytes(extensions[:2], "big")
        body, extensions = _vector(extensions[2:], 2)
        if kind == _ENCRYPTED_CLIENT_HELLO:
            raise NotTls
        if kind == _SERVER_NAME:
            names = _vector(body, 2)[0]
            # One name of the one type there is.
            if names[0] != 0 or server_name:
                raise NotTls
            name, more = _vector(names[1:], 2)
            if more:
                raise NotTls
            server_name = name.decode("latin-1")
    return server_name


def _vector(data: bytes, length_bytes: int) -> tuple[bytes, bytes]:
    """Returns the bytes of a length-prefixed vector, and what follows it. Raises IndexError where it is cut short."""
    size = int.from_bytes(data[:length_bytes], "big")
    if len(data) < length_bytes + size:
        raise IndexError
    return data[length_bytes : length_bytes + size], data[length_bytes + size :]
