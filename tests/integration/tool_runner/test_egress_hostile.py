"""Ways out that tools try: none reaches what it may not, and each is told so."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest

from services.tool_runner.core.ports import Tunnel
from services.tool_runner.egress import destinations, exchange
from services.tool_runner.egress.protocol.placeholders import split
from services.tool_runner.egress.proxy import Limits
from tests.integration.tool_runner.egress_world import World, settings, world
from tests.integration.tool_runner.test_egress_proxy import KEY, allowing, secret
from tests.polling import until

EVERYTHING = '{"allow": ["*"]}'


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with world(monkeypatch, settings()) as made:
        yield made


@pytest.fixture
async def guarded(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """As an operator has it who sets nothing: public addresses only."""
    async with world(monkeypatch, settings(allow_private=False)) as made:
        yield made


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost.",
        "[::1]",
        "10.0.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "168.63.129.16",
        "100.100.100.200",
        "0.0.0.0",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[::127.0.0.1]",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "127.0.0.1.",
        "api.test",
        "private.test",
    ],
)
async def test_no_address_of_a_private_network(guarded: World, host: str) -> None:
    guarded.names |= {"private.test": [["93.184.216.34", "10.0.0.1"]], "localhost": [["127.0.0.1"]]}
    async with guarded.raw(EVERYTHING) as say:
        answer = await say(f"CONNECT {host}:443 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 "), answer
        answer = await say(f"GET http://{host}/latest/meta-data HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 "), answer


@pytest.mark.parametrize("host", ["169.254.169.254", "[::ffff:169.254.169.254]", "0.0.0.0", "[fe80::1]", "[::]"])
async def test_no_metadata_even_where_private_addresses_are_allowed(made: World, host: str) -> None:
    async with made.raw(json.dumps({"allow": ["*", host]})) as say:
        answer = await say(f"CONNECT {host}:80 HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    assert b"which no tool may reach" in answer


async def test_no_part_of_loci_even_where_private_addresses_are_allowed(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = made.plain.port
    async with world(monkeypatch, settings(own=(("0.0.0.0", port),))) as own:
        here = socket.gethostbyname(socket.gethostname())
        for host in ("127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]", here, "api.test"):
            async with own.raw(json.dumps({"allow": [f"{host}:{port}"]})) as say:
                answer = await say(f"GET http://{host}:{port}/v1/agents HTTP/1.1\r\nhost: x\r\n\r\n".encode())
                assert b"is a part of Loci, which tools reach as http://loci" in answer, host
    assert made.plain.asked == []


async def test_a_name_that_changes_its_address_gains_nothing(guarded: World) -> None:
    guarded.names["rebind.test"] = [["93.184.216.34"], ["127.0.0.1"]]
    dialled: list[str] = []

    async def dial(addresses: list[object], origin: object) -> None:
        dialled.extend(map(str, addresses))
        raise ConnectionError

    guarded.egress._places.dial = dial  # type: ignore[method-assign, assignment]
    async with guarded.raw(EVERYTHING) as say:
        await say(b"CONNECT rebind.test:443 HTTP/1.1\r\nhost: x\r\n\r\n")
        answer = await say(b"CONNECT rebind.test:443 HTTP/1.1\r\nhost: x\r\n\r\n")
    assert dialled == ["93.184.216.34"]
    assert answer.startswith(b"HTTP/1.1 403 ")


async def test_a_redirect_is_judged_like_any_address(made: World) -> None:
    async with made.client(allowing(made, "api.test")) as (client, _):
        for target in ("http://169.254.169.254/", f"http://other.test:{made.plain.port}/", "http://loci/"):
            url = f"http://api.test:{made.plain.port}/redirect"
            answer = await client.get(url, params={"to": target}, follow_redirects=True)
            assert (str(answer.url), answer.status_code) == (target, 403)
    assert len(made.plain.asked) == 3


async def test_another_host_behind_an_allowed_one(made: World) -> None:
    port, secure = made.plain.port, made.secure.port
    async with made.raw(allowing(made, "api.test")) as say:
        # The target decides, and the host is told what it is.
        await say(f"GET http://api.test:{port}/a HTTP/1.1\r\nhost: other.test\r\n\r\n".encode())
        assert made.plain.asked[-1].headers["host"] == f"api.test:{port}"
        tunnel = f"CONNECT api.test:{port} HTTP/1.1\r\nhost: x\r\n\r\n"
        answer = await say(f"{tunnel}GET /b HTTP/1.1\r\nhost: other.test\r\n\r\n".encode())
        assert b"this tunnel leads to api.test, and the request is for other.test" in answer
        answer = await say(f"{tunnel}GET http://other.test:{port}/c HTTP/1.1\r\nhost: api.test\r\n\r\n".encode())
        assert b"within a tunnel a request asks for a path" in answer
        for target in (f"http://api.test:{port}@other.test/", f"http://other.test\\@api.test:{port}/", "//api.test/"):
            answer = await say(f"GET {target} HTTP/1.1\r\nhost: api.test\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 403 "), target
    assert len(made.plain.asked) == 1
    for held in ({}, {"KEY": secret(made)}):
        async with made.proxy(_tunnel(made, allowing(made, "api.test", **held))) as url:
            with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
                await _handshake(url, f"api.test:{secure}", "other.test")
            with pytest.raises(ssl.SSLError):
                await _handshake(url, f"api.test:{secure}", "api.test.other.test")
    assert made.secure.asked == []


async def test_a_tunnel_that_is_neither_tls_nor_http(made: World) -> None:
    async with made.raw(allowing(made, "api.test")) as say:
        for port in (made.plain.port, made.secure.port):
            for data in (b"SSH-2.0-x\r\n", b"\x00\x01\x02", b"\x16\x03\x01\x00\x00", b"\x16" + b"A" * 70_000, b""):
                answer = await say(f"CONNECT api.test:{port} HTTP/1.1\r\nhost: x\r\n\r\n".encode() + data)
                assert answer.startswith(b"HTTP/1.1 200 ")
    assert made.plain.asked == made.secure.asked == []
    assert all(transport is None for transport in made.plain.connections)


@pytest.mark.parametrize(
    ("request_lines", "status"),
    [
        ("POST {url} HTTP/1.1|host: x|content-length: 4|transfer-encoding: chunked||0||GET /evil HTTP/1.1||", b"403"),
        ("POST {url} HTTP/1.1|host: x|content-length: 4|content-length: 5||abcd", b"400"),
        ("POST {url} HTTP/1.1|host: x|content-length: +4||abcd", b"400"),
        ("POST {url} HTTP/1.1|host: x|transfer-encoding: xchunked||0||", b"501"),
        ("POST {url} HTTP/1.1|host: x|transfer-encoding : chunked||0||", b"400"),
        ("POST {url} HTTP/1.1|host: x|transfer-encoding: chunked||-1|x||", b"403"),
        ("POST {url} HTTP/1.1|host: x|transfer-encoding: chunked||1|xy||0||", b"403"),
        ("POST {url} HTTP/1.1|host: x|content-length: 9||short", b"403"),
        ("GET {url} HTTP/1.1|host: x|x-a: b\rcontent-length: 5||", b"400"),
        ("GET {url} HTTP/1.1|host: x|x-a: b\0c||", b"400"),
        ("GET {url}\rx HTTP/1.1|host: x||", b"400"),
        ("GET {url} HTTP/1.1|host: x|host: y||", b"400"),
        ("GET {url} HTTP/1.1||", b"400"),
        ("TRACE {url} HTTP/1.1|host: x||", b"403"),
        ("CONNECT api.test HTTP/1.1|host: x||", b"403"),
        ("CONNECT api.test:0 HTTP/1.1|host: x||", b"403"),
        ("CONNECT :443 HTTP/1.1|host: x||", b"403"),
        ("GET / HTTP/1.1|host: api.test||", b"403"),
        ("GET https://api.test/ HTTP/1.1|host: api.test||", b"403"),
        ("GET ftp://api.test/ HTTP/1.1|host: api.test||", b"403"),
        ("GET {url} HTTP/1.1|host: x|x: " + "a" * 200_000 + "||", b"431"),
    ],
)
async def test_requests_that_are_not_plain(made: World, request_lines: str, status: bytes) -> None:
    data = request_lines.format(url=f"http://api.test:{made.plain.port}/body").replace("|", "\r\n").encode()
    async with made.raw(allowing(made, "api.test")) as say:
        answer = await say(data)
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    assert not any(request.path == "/evil" for request in made.plain.asked)


async def test_what_is_read_is_what_is_sent(made: World) -> None:
    """Folded headers, and headers that `Connection` names, arrive in one form: no two readers differ about them."""
    lines = (
        f"POST http://api.test:{made.plain.port}/body HTTP/1.1|host: x|x-fold: a|\tb|connection: x-gone, content-length"
        "|x-gone: 1|upgrade: h2c|http2-settings: x|content-length: 3||abc"
    )
    async with made.raw(allowing(made, "api.test")) as say:
        answer = await say(lines.replace("|", "\r\n").encode())
    assert answer.endswith(b"abc")
    (seen,) = made.plain.asked
    assert seen.headers["x-fold"] == "a b"
    assert {"x-gone", "upgrade", "connection"}.isdisjoint(name.lower() for name in seen.headers)


async def test_a_head_that_does_not_end(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "HEAD_SECONDS", 0.3)
    async with made.proxy(_tunnel(made, "")) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        dripping = asyncio.create_task(_drip(writer))
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 408 ")
        await _stop(dripping, writer)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("GET {url} HTTP/1.1|host: x|x: ", b"431"),
        ("CONNECT other.test:443 HTTP/1.1|host: x||", b"403"),
        ("POST http://other.test/ HTTP/1.1|host: x|content-length: 100000000||", b"403"),
        ("POST http://other.test/ HTTP/1.1|host: x|transfer-encoding: chunked||5f5e100|", b"403"),
        ("nonsense||", b"400"),
        ("CONNECT api.test:443 HTTP/1.1|host: x|content-length: 100000000||", b"403"),
    ],
)
async def test_who_still_sends_reads_why_it_is_refused(made: World, head: str, status: bytes) -> None:
    """A connection that is closed while bytes of the other side are unread is reset, and the answer is lost."""
    allowed = f"api.test:{made.plain.port}"
    data = head.format(url=f"http://{allowed}/").replace("|", "\r\n").encode()
    async with made.proxy(_tunnel(made, json.dumps({"allow": [allowed]}))) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        writer.write(data)
        flooding = asyncio.create_task(_flood(writer))
        head_of_answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert head_of_answer.startswith(b"HTTP/1.1 " + status), head_of_answer
        # To the end of it, which comes although the tool sends on.
        assert (await asyncio.wait_for(reader.read(), 20)).endswith(b"\n")
        await _stop(flooding, writer)


async def _drip(writer: asyncio.StreamWriter) -> None:
    """A letter now and then."""
    with suppress(ConnectionError):
        for letter in itertools.chain("GET http://api.test/", itertools.repeat("a")):
            writer.write(letter.encode())
            await writer.drain()
            await asyncio.sleep(0.02)


async def _flood(writer: asyncio.StreamWriter) -> None:
    """As long as somebody takes it."""
    with suppress(ConnectionError):
        while True:
            writer.write(b"a" * 10_000)
            await writer.drain()
            await asyncio.sleep(0.001)


async def _stop(sending: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    writer.close()


@pytest.mark.timing
async def test_what_is_idle_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        world(monkeypatch, settings(limits=Limits(idle=1.5))) as made,
        made.client(allowing(made, "api.test")) as (client, _),
    ):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"http://api.test:{made.plain.port}/hang")
        # A stream that moves does not, however long it is.
        assert "data: 19" in (await client.get(f"http://api.test:{made.plain.port}/ticks?number=20")).text


async def test_the_bytes_of_a_call_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        world(monkeypatch, settings(limits=Limits(bytes_per_call=1024 * 1024))) as made,
        made.client(allowing(made, "api.test")) as (client, _),
    ):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get(f"http://api.test:{made.plain.port}/large")
        answer = await client.get(f"http://api.test:{made.plain.port}/x")
    assert (answer.status_code, answer.text) == (403, "this call has sent and received 1 MiB, and may no more\n")


async def test_the_connections_of_a_call_are_limited(made: World) -> None:
    async with made.proxy(_tunnel(made, "")) as url, httpx.AsyncClient(proxy=url, trust_env=False) as client:
        port = int(url.rpartition(":")[2])
        held = [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(64)]
        assert "64 connections at once" in (await client.get("http://loci/")).text
        for writer in held:
            writer.close()
        async with asyncio.timeout(20):
            while "64 connections" in (await client.get("http://loci/")).text:
                await asyncio.sleep(0.02)


async def test_names_that_are_never_resolved_hold_few_threads(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def resolve(host: str) -> list[object]:
        asked.append(host)
        await asyncio.sleep(30)
        return []

    monkeypatch.setattr(destinations, "resolve", resolve)
    async with made.raw(EVERYTHING) as say:
        request = "GET http://n{0}.test/ HTTP/1.1\r\nhost: n{0}.test\r\n\r\n"
        saying = [asyncio.create_task(say(request.format(number).encode())) for number in range(20)]
        await until(lambda: len(asked) == 2)
        # A third would follow at once.
        await asyncio.sleep(0.3)
        assert len(asked) == 2
        for task in saying:
            task.cancel()
        await asyncio.gather(*saying, return_exceptions=True)


async def test_a_secret_that_breaks_a_header_is_not_sent(made: World) -> None:
    async with made.client(allowing(made, "api.test", KEY=secret(made)), {"KEY": "a\r\nx-evil: 1"}) as (client, shown):
        answer = await client.get(f"https://api.test:{made.secure.port}/x", headers={"x-key": shown["KEY"]})
    assert (answer.status_code, "line breaks" in answer.text) == (403, True)


async def test_a_secret_does_not_come_back_in_any_header(made: World) -> None:
    async with made.client(allowing(made, "api.test", KEY=secret(made)), {"KEY": KEY}) as (client, shown):
        basic = base64.b64encode(f"u:{shown['KEY']}".encode()).decode()
        headers = {"authorization": f"Basic {basic}", "x-key": shown["KEY"]}
        url = f"https://api.test:{made.secure.port}"
        answer = await client.get(f"{url}/mirror", headers=headers)
        assert answer.headers["x-seen-authorization"] == f"Basic {basic}"
        assert answer.headers["x-seen-x-key"] == shown["KEY"]
        answer = await client.get(f"{url}/redirect", params={"to": f"/x?key={shown['KEY']}"})
        assert answer.headers["location"] == f"/x?key={shown['KEY']}"


def _tunnel(made: World, network: str) -> Tunnel:
    policy = made.egress.policy_of(network)
    return made.egress.tunnel(policy, split(dict.fromkeys(policy.secrets, KEY), policy)[1])


async def _handshake(proxy: str, target: str, name: str) -> None:
    """TLS for `name` in a tunnel to `target`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.rpartition(":")[2]))
    try:
        writer.write(f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n".encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        await writer.start_tls(context, server_hostname=name)
    finally:
        writer.close()
