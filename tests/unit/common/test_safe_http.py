"""The addresses of users that may be called."""

import asyncio
import ipaddress
import re
import socket
import threading
from typing import Any

import httpx
import pytest

from services.common import own_places
from services.common.core.addresses import AddressRefused, is_public, literal_address
from services.common.core.private_hosts import PrivateHosts
from services.common.dns import resolve
from services.common.safe_http import SafeTransport, check_url
from tests.polling import until


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "1.1.1.1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",  # mapped
        "2002:808:808::",  # 6to4
        "64:ff9b::808:808",  # NAT64
    ],
)
def test_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",  # carrier-grade NAT
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",  # the metadata of clouds
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",  # IPv4-compatible
        "::ffff:0.0.0.0",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",  # NAT64 of a local operator
        "2001::1",  # Teredo
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ],
)
def test_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "https://example.com:8443/hook?key=1#part",
        "https://EXAMPLE.com./hook",
        "https://bücher.example/hook",
        "https://under_score.example",
        "https://8.8.8.8/hook",
        "https://[2001:4860:4860::8888]/hook",
        "https://134744072/",  # 8.8.8.8
    ],
)
def test_urls_that_may_be_called(url: str) -> None:
    assert check_url(url, allow_private=False).scheme == "https"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "must begin with https://"),
        ("example.com", "must begin with https://"),
        ("https://", "must begin with https:// and name a host"),
        ("https:///hook", "must begin with https:// and name a host"),
        ("ftp://example.com", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
        ("javascript:alert(1)", "must begin with https://"),
        ("http://example.com", "must begin with https://"),
        ("http://localhost:8080", "must begin with https://"),
        ("https://user:secret@example.com", "user name or password"),
        ("https://user@example.com", "user name or password"),
        ("https://example.com\\@127.0.0.1/", "user name or password"),
        ("https://a b/", "is not the name of a host"),
        ("https://a..b/", "is not the name of a host"),
        ("https://-a.example/", "is not the name of a host"),
        (f"https://{'a' * 64}.example/", "is not the name of a host"),
        ("https://exa\nmple.com", "this is not a URL"),
        ("https://0177.0.0.1/", "this is not a URL"),
        ("https://example.com:0/", "is not a port"),
        ("https://example.com:65536/", "is not a port"),
        ("https://example.com:x/", "this is not a URL"),
        (f"https://example.com/{'a' * 2_048}", "longer than 2048 characters"),
        ("https://localhost/", "is not a public address"),
        ("https://api.localhost./", "is not a public address"),
        ("https://127.0.0.1/", "is not a public address"),
        ("https://[::1]/", "is not a public address"),
        ("https://[::ffff:10.0.0.1]/", "is not a public address"),
        ("https://[fe80::1%25eth0]/", "which nobody may call"),
        ("https://10.0.0.1/", "LOCI_ALLOW_PRIVATE_URLS=1"),
        ("https://169.254.169.254/latest/meta-data", "which nobody may call"),
        ("https://2130706433/", "is not a public address"),
        ("https://0x7f000001/", "is not a public address"),
        ("https://127.1/", "is not a public address"),
    ],
)
def test_urls_that_may_not_be_called(url: str, why: str) -> None:
    with pytest.raises(AddressRefused, match=re.escape(why)):
        check_url(url, allow_private=False)


@pytest.mark.parametrize("url", ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]:81/", "https://10.0.0.1/"])
def test_private_urls_where_they_are_allowed(url: str) -> None:
    assert str(check_url(url, allow_private=True)) == url


@pytest.mark.parametrize(
    "url",
    [
        *("http://10.0.0.1/", "http://example.com/", "https://user:secret@127.0.0.1/", "https://169.254.169.254/"),
        *("https://2852039166/", "https://0xa9fea9fe/", "https://169.16689662/", "https://[::ffff:169.254.169.254]/"),
        *("https://[fd00:ec2::254]/", "https://168.63.129.16/", "https://100.100.100.200/"),
    ],
)
def test_what_stays_refused_where_private_urls_are_allowed(url: str) -> None:
    with pytest.raises(AddressRefused):
        check_url(url, allow_private=True)


NAMED = PrivateHosts(hosts=(("mcp-server", 8000), ("*.internal", None), ("127.0.0.1", 8001)))


@pytest.mark.parametrize(
    "url",
    [
        *("http://mcp-server:8000/mcp", "http://MCP-Server.:8000/", "http://a.internal:1/", "https://a.internal/"),
        "http://127.0.0.1:8001/",
    ],
)
def test_hosts_with_a_name_by_http_and_at_private_addresses(url: str) -> None:
    check_url(url, allow_private=NAMED)


@pytest.mark.parametrize(
    "url", ["http://mcp-server:8001/", "http://internal/", "http://other/", "https://10.0.0.1/", "http://127.0.0.1:80/"]
)
def test_hosts_without_a_name_stay_refused(url: str) -> None:
    with pytest.raises(AddressRefused, match="LOCI_ALLOW_PRIVATE_HOSTS"):
        check_url(url, allow_private=NAMED)


async def test_a_name_leads_neither_to_metadata_nor_to_parts_of_loci(monkeypatch: pytest.MonkeyPatch) -> None:
    private = PrivateHosts(hosts=(("inside", None),))
    monkeypatch.setattr(own_places.OWN, "_places", (("127.0.0.1", 8283),))
    for port, address, problem in ((80, "169.254.169.254", "nobody may call"), (8283, "127.0.0.1", "part of Loci")):

        def answer(*_: Any, at: str = address, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (at, 0))]

        monkeypatch.setattr(socket, "getaddrinfo", answer)
        transport = SafeTransport(allow_private=private)
        with pytest.raises(httpx.ConnectError, match=problem):
            await transport.handle_async_request(httpx.Request("GET", f"http://inside:{port}/"))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        *(("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"), ("0X7F.1.", "127.0.0.1")),
        *(
            ("017700000001", "127.0.0.1"),
            ("2852039166", "169.254.169.254"),
            ("[::1]", "::1"),
            ("fe80::1%eth0", "fe80::1"),
        ),
        *(("256.1.1.1.1", None), ("99999999999", None), ("1.2.3.4.example.com", None), ("08", None), ("", None)),
    ],
)
def test_literals_in_every_spelling(host: str, address: str | None) -> None:
    assert literal_address(host) == (None if address is None else ipaddress.ip_address(address))


@pytest.mark.parametrize(
    ("address", "problem"), [("10.0.0.7", "is not a public address"), (None, "cannot be resolved")]
)
async def test_a_name_is_judged_by_what_it_resolves_to(
    address: str | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: Any, **__: Any) -> list[Any]:
        if address is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    transport = SafeTransport(allow_private=False)
    with pytest.raises(httpx.ConnectError, match=problem):
        await transport.handle_async_request(httpx.Request("GET", "https://somewhere.test/"))
    await transport.aclose()


async def test_names_that_are_never_resolved_keep_nobody_else_from_work(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, asked = threading.Event(), list[int]()

    def never(*_: Any, **__: Any) -> list[Any]:
        asked.append(1)
        answered.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    asking = [asyncio.create_task(resolve(f"n{number}.test")) for number in range(40)]
    await until(lambda: len(asked) == 40)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 20) == 7
    answered.set()
    assert await asyncio.gather(*asking) == [[]] * 40
