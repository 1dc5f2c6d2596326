"""Calls to addresses of users: made to the address that was checked, under the name that was asked for."""

import asyncio
import datetime
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from services.common import safe_http
from services.common.core.addresses import AddressRefused
from services.common.dns import resolve
from services.common.safe_http import SafeTransport, safe_client

Answer = Callable[[bytes], bytes]
_OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
NAME = "hooks.example.com"


@asynccontextmanager
async def listening(answer: Answer, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server on loopback that answers each request's head; its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


def _certified(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for NAME, and a client's that trusts it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return server, ssl.create_default_context(cafile=str(folder / "cert.pem"))


def _resolving(*answers: list[str]) -> tuple[Callable[[str], Awaitable[list[Any]]], list[str]]:
    """A resolver that gives one answer after another, and the names it was asked for."""
    remaining, asked = list(answers), []

    async def resolve(host: str) -> list[Any]:
        asked.append(host)
        return [ipaddress.ip_address(address) for address in remaining.pop(0)]

    return resolve, asked


async def test_the_checked_address_is_called_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = _certified(tmp_path)
    heads: list[bytes] = []

    def answer(head: bytes) -> bytes:
        heads.append(head)
        return _OK

    names: list[str | None] = []
    server.sni_callback = lambda _, name, __: names.append(name)
    resolve, asked = _resolving(["127.0.0.1"])
    monkeypatch.setattr(safe_http, "resolve", resolve)
    async with (
        listening(answer, server) as port,
        httpx.AsyncClient(transport=SafeTransport(allow_private=True, trusted=client)) as http,
    ):
        response = await http.get(f"https://{NAME}:{port}/hook")
    assert (response.text, str(response.url)) == ("ok", f"https://{NAME}:{port}/hook")
    assert f"Host: {NAME}:{port}".encode() in heads[0]
    # Resolved once: a second answer would not have been there.
    assert (names, asked) == ([NAME], [NAME])


async def test_a_certificate_for_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = _certified(tmp_path)
    resolve, _ = _resolving(["127.0.0.1"])
    monkeypatch.setattr(safe_http, "resolve", resolve)
    async with (
        listening(lambda _: _OK, server) as port,
        httpx.AsyncClient(transport=SafeTransport(allow_private=True, trusted=client)) as http,
    ):
        with pytest.raises(httpx.ConnectError, match=r"(?i)hostname mismatch"):
            await http.get(f"https://other.example.com:{port}/")


async def test_one_private_address_among_public_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve, _ = _resolving(["8.8.8.8", "10.0.0.1"])
    monkeypatch.setattr(safe_http, "resolve", resolve)
    async with safe_client(allow_private=False, timeout=30) as http:
        with pytest.raises(httpx.ConnectError, match=f"{NAME} is not a public address"):
            await http.get(f"https://{NAME}/")


async def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve, _ = _resolving(["127.0.0.2", "127.0.0.1"])
    monkeypatch.setattr(safe_http, "resolve", resolve)
    async with listening(lambda _: _OK) as port, safe_client(allow_private=True, timeout=30) as http:
        assert (await http.get(f"http://localhost:{port}/")).text == "ok"


async def test_redirects_are_not_followed_and_checked_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_http, "resolve", _resolving(["127.0.0.1"], ["127.0.0.1"], ["10.0.0.1"])[0])
    away = b"HTTP/1.1 302 Found\r\nlocation: http://internal.example.com/\r\ncontent-length: 0\r\n\r\n"
    async with listening(lambda _: away) as port, safe_client(allow_private=True, timeout=30) as http:
        assert (await http.get(f"http://localhost:{port}/")).status_code == 302
        with pytest.raises(httpx.ConnectError, match="must begin with https://"):
            await http.get(f"http://localhost:{port}/", follow_redirects=True)


async def test_names_are_resolved() -> None:
    assert ipaddress.ip_address("127.0.0.1") in await resolve("localhost")
    with pytest.raises(AddressRefused, match="cannot be resolved"):
        await resolve("a" * 64 + ".example.com")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with safe_client(allow_private=True, timeout=30) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://127.0.0.1:{port}/")
