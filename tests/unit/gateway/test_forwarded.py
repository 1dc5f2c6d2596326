"""Whose word is taken on where a request came from."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network
from typing import Any

import pytest

from gateway.server.forwarded import ForwardedRequests

_PROXIES = (ip_network("10.1.0.0/16"), ip_network("::1/128"))
_SAID = (("x-forwarded-for", "203.0.113.9"), ("x-forwarded-proto", "https"), ("x-forwarded-host", "loci.example.com"))


def _served(client: Any, headers: Sequence[tuple[str, str]], kind: str = "http") -> tuple[str, str, str]:
    """What the application sees: client, scheme, host."""
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    async def nothing(*_: Any) -> Any:
        return None

    raw = [(name.encode(), value.encode()) for name, value in (("host", "gateway:8283"), *headers)]
    scope = {"type": kind, "scheme": "http" if kind == "http" else "ws", "client": client, "headers": raw}
    asyncio.run(ForwardedRequests(app, _PROXIES)(scope, nothing, nothing))
    (scope,) = seen
    hosts = [value.decode() for name, value in scope["headers"] if name == b"host"]
    return str(scope["client"][0] if scope["client"] else ""), scope["scheme"], ",".join(hosts)


@pytest.mark.parametrize("address", ["10.1.2.3", "::1"])
def test_a_proxys_word_is_taken(address: str) -> None:
    assert _served((address, 1), _SAID) == ("203.0.113.9", "https", "loci.example.com")
    assert _served((address, 1), _SAID, "websocket") == ("203.0.113.9", "wss", "loci.example.com")


@pytest.mark.parametrize("client", [("10.2.0.1", 1), ("127.0.0.1", 1), ("not an address", 1), None])
def test_nobody_elses_is(client: Any) -> None:
    assert _served(client, _SAID) == (client[0] if client else "", "http", "gateway:8283")


def test_what_a_client_wrote_before_the_proxy_is_not_taken() -> None:
    lies = (
        ("x-forwarded-for", "1.2.3.4, 203.0.113.9, 10.1.9.9"),
        ("x-forwarded-host", "evil.example, loci.example.com"),
    )
    assert _served(("10.1.2.3", 1), lies) == ("203.0.113.9", "http", "loci.example.com")


def test_a_proxy_that_says_nothing_changes_nothing() -> None:
    assert _served(("10.1.2.3", 1), ()) == ("10.1.2.3", "http", "gateway:8283")
    assert _served(("10.1.2.3", 1), (("x-forwarded-host", " "), ("x-forwarded-proto", "gopher"))) == (
        "10.1.2.3",
        "http",
        "gateway:8283",
    )
