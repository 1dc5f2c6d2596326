"""Whom the first bytes of TLS ask for."""

import ssl

import pytest

from services.tool_runner.egress.protocol.client_hello import NotTls, names_only, server_name


def hello(name: str | None) -> bytes:
    """Returns the greeting of Python's own TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def records(data: bytes, size: int) -> bytes:
    """The same message, in records of `size` bytes."""
    message = data[5:]
    pieces = [message[start : start + size] for start in range(0, len(message), size)]
    return b"".join(data[:3] + len(piece).to_bytes(2, "big") + piece for piece in pieces)


def extended(data: bytes, kind: int, body: bytes) -> bytes:
    """With one more extension at its end."""
    extension = kind.to_bytes(2, "big") + len(body).to_bytes(2, "big") + body
    message = data[9:]
    place = 34
    for length_bytes in (1, 2, 1):
        place += length_bytes + int.from_bytes(message[place : place + length_bytes], "big")
    size = int.from_bytes(message[place : place + 2], "big") + len(extension)
    message = message[:place] + size.to_bytes(2, "big") + message[place + 2 :] + extension
    return data[:3] + (len(message) + 4).to_bytes(2, "big") + b"\x01" + len(message).to_bytes(3, "big") + message


def test_the_name() -> None:
    assert server_name(hello("api.example.com")) == "api.example.com"
    assert server_name(hello(None)) == ""
    assert server_name(hello("api.example.com") + b"more") == "api.example.com"


def test_in_pieces() -> None:
    data = hello("api.example.com")
    assert all(server_name(data[:size]) is None for size in range(len(data)))
    split = records(data, 50)
    assert server_name(split) == "api.example.com"
    assert all(server_name(split[:size]) is None for size in range(len(split)))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x02\x00\x00\x01\x01",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03",
        b"\x16\x03\x01\xff\xff",
        b"\x80\x2e\x01\x03\x01",
        records(hello("a.org"), 40).replace(b"\x16\x03", b"\x17\x03"),
    ],
)
def test_what_is_no_client_hello(data: bytes) -> None:
    with pytest.raises(NotTls):
        server_name(data)


def test_two_names_and_hidden_ones_are_refused() -> None:
    other = b"\x00\x0c\x00\x00\x09other.org"
    assert names_only(extended(hello("a.org"), 0, other), "a.org") is False
    assert names_only(extended(hello("a.org"), 0xFE0D, b"x"), "a.org") is False
    assert names_only(extended(hello("a.org"), 0x1234, b"x"), "a.org") is True


@pytest.mark.parametrize(
    ("data", "host", "answer"),
    [
        (hello("a.org"), "a.org", True),
        (hello("A.org"), "a.org", True),
        (hello("b.org"), "a.org", False),
        (hello("x.a.org"), "a.org", False),
        (hello(None), "a.org", True),
        pytest.param(hello("a.org")[:40], "a.org", None, id="cut short"),
        (b"\x16\x03\x01\x40\x00\x01" + b"\xff" * 70_000, "a.org", False),
        (records(hello("a.org") + bytes(200), 1), "a.org", False),
    ],
)
def test_it_is_for_one_host_alone(data: bytes, host: str, answer: bool | None) -> None:
    assert names_only(data, host) is answer
