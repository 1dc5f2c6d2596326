"""The way of tools through the proxy of their sandbox: real clients, real TLS, real hosts on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator

import aiohttp
import httpx
import pytest

from services.tool_runner.egress.certificates import Authority
from tests.integration.tool_runner.egress_world import Host, World, hosting, settings, world

KEY = "sk-very-secret-value"


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with world(monkeypatch, settings()) as made:
        yield made


def allowing(made: World, *hosts: str, **secrets: object) -> str:
    ports = (made.plain.port, made.secure.port)
    return json.dumps({"allow": [f"{host}:{port}" for host in hosts for port in ports], "secrets": secrets})


def secret(made: World, **more: str) -> dict[str, object]:
    return {"hosts": [f"api.test:{made.secure.port}", f"api.test:{made.plain.port}"], **more}


async def test_http_and_https_to_hosts_that_are_allowed(made: World) -> None:
    async with made.client(allowing(made, "api.test")) as (client, _):
        for number in range(3):
            answer = await client.get(f"http://api.test:{made.plain.port}/x?n={number}")
            assert answer.json()["target"] == f"/x?n={number}"
            assert answer.json()["headers"]["host"] == f"api.test:{made.plain.port}"
        for _ in range(2):
            assert (await client.get(f"https://api.test:{made.secure.port}/x")).status_code == 200
    # One connection serves requests that follow one another.
    assert (len(made.plain.asked), len(made.plain.connections)) == (3, 1)


async def test_hosts_that_are_not_allowed(made: World) -> None:
    async with made.client("") as (client, _):
        answer = await client.get("http://api.test/x")
        assert answer.status_code == 403
        assert answer.text == (
            'this tool may not reach api.test:80; to allow it, set the tool\'s network to {"allow": ["api.test"]}\n'
        )
        with pytest.raises(httpx.ProxyError, match=r"403 this tool may not reach api\.test:443"):
            await client.get("https://api.test/x")
        # The connection goes on after a refusal.
        assert (await client.post("http://api.test/x", content=b"x" * 100_000)).status_code == 403
    assert made.plain.asked == made.secure.asked == []


async def test_bodies_go_through_as_they_come(made: World) -> None:
    body = bytes(range(256)) * 4_000

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 50_000):
            yield body[start : start + 50_000]

    async with made.client(allowing(made, "api.test", KEY=secret(made)), {"KEY": KEY}) as (client, _):
        for scheme, port in (("http", made.plain.port), ("https", made.secure.port)):
            assert (await client.post(f"{scheme}://api.test:{port}/body", content=body)).content == body
            assert (await client.post(f"{scheme}://api.test:{port}/body", content=chunks())).content == body
            head = await client.head(f"{scheme}://api.test:{port}/large")
            assert (head.headers["content-length"], head.content) == ("4194304", b"")
            assert len((await client.get(f"{scheme}://api.test:{port}/large")).content) == 4_194_304


async def test_streams_come_as_they_are_sent(made: World) -> None:
    url = f"https://api.test:{made.secure.port}/steps"
    async with (
        made.client(allowing(made, "api.test", KEY=secret(made)), {"KEY": KEY}) as (client, _),
        client.stream("GET", url) as answer,
    ):
        lines = (line async for line in answer.aiter_lines() if line)
        for number in range(3):
            # The next is not sent before this one has come.
            made.secure.steps.release()
            assert await anext(lines) == f"data: {number}"


async def test_websockets_and_100_continue(made: World) -> None:
    tunnel = made.egress.tunnel(made.egress.policy_of(allowing(made, "api.test")))
    async with made.proxy(tunnel) as proxy, aiohttp.ClientSession() as client:
        url = f"http://api.test:{made.plain.port}"
        async with client.ws_connect(f"{url}/socket", proxy=proxy) as socket:
            for text in ("a", "b"):
                await socket.send_str(text)
                assert (await socket.receive()).data == f"heard {text}"
        async with client.post(f"{url}/body", data=b"late", expect100=True, proxy=proxy) as answer:
            assert await answer.read() == b"late"


# Secrets ------------------------------------------------------------------------------------------------


async def test_a_secret_is_put_in_on_the_way(made: World) -> None:
    network = allowing(made, "api.test", KEY=secret(made))
    async with made.client(network, {"KEY": KEY, "OTHER": "plain"}) as (client, shown):
        assert shown["OTHER"] == "plain"
        assert KEY not in shown["KEY"]
        basic = base64.b64encode(f"user:{shown['KEY']}".encode()).decode()
        answer = await client.get(
            f"https://api.test:{made.secure.port}/x/{shown['KEY']}?key={shown['KEY']}",
            headers={"authorization": f"Basic {basic}", "x-key": f"Token {shown['KEY']}"},
        )
    seen = answer.json()
    assert base64.b64decode(seen["headers"]["authorization"].split()[1]).decode() == f"user:{KEY}"
    assert seen["headers"]["x-key"] == f"Token {KEY}"
    assert seen["target"] == f"/x/{KEY}?key={KEY}"


async def test_a_header_is_set_whatever_the_tool_sends(made: World) -> None:
    network = allowing(made, "api.test", KEY=secret(made, header="Authorization", format="Bearer {}"))
    async with made.client(network, {"KEY": f"{KEY}\n"}) as (client, shown):
        answer = await client.get(
            f"https://api.test:{made.secure.port}/mirror", headers={"authorization": "Bearer mine"}
        )
    # Bodies are not looked into; headers are.
    assert answer.text == f"Bearer {KEY}"
    assert answer.headers["x-seen-authorization"] == f"Bearer {shown['KEY']}"


async def test_a_secret_goes_to_its_own_hosts_alone(made: World) -> None:
    network = allowing(made, "api.test", "other.test", KEY=secret(made))
    async with made.client(network, {"KEY": KEY}) as (client, shown):
        answer = await client.get(f"http://other.test:{made.plain.port}/x", headers={"x-key": shown["KEY"]})
        assert answer.json()["headers"]["x-key"] == shown["KEY"]
        refused = await client.get(f"http://api.test:{made.plain.port}/x", headers={"x-key": shown["KEY"]})
        assert (refused.status_code, refused.text) == (403, "a secret is not sent in clear: use https://api.test\n")
        assert (await client.get(f"http://api.test:{made.plain.port}/x")).status_code == 200
        # Nor to another that is asked for within a tunnel to its own.
        url = f"https://api.test:{made.secure.port}/x"
        refused = await client.get(url, headers={"x-key": shown["KEY"], "host": "other.test"})
        assert refused.text == "this tunnel leads to api.test, and the request is for other.test\n"
    assert not any(KEY in str(request.headers) for request in (*made.plain.asked, *made.secure.asked))


async def test_a_secret_goes_to_nobody_whose_certificate_is_not_trusted(made: World) -> None:
    async with hosting(Host(), Authority().context("api.test")) as impostor:
        network = json.dumps({"secrets": {"KEY": {"hosts": [f"api.test:{impostor.port}"], "header": "x-key"}}})
        async with made.client(network, {"KEY": KEY}) as (client, _):
            answer = await client.get(f"https://api.test:{impostor.port}/x")
    assert answer.status_code == 502
    assert "its certificate is not trusted" in answer.text
    assert impostor.asked == []


# Loci ---------------------------------------------------------------------------------------------------


async def test_loci_is_called_as_the_run(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(monkeypatch, settings(gateway_url=f"http://127.0.0.1:{made.plain.port}/base/")) as other:
        async with other.client("", token="loci-run-abc") as (client, _):
            headers = {
                "authorization": "Bearer mine",
                "user_id": "user-1",
                "x-bare-password": "password geheim",
                "x-loci-tenant": "other",
                "x-stainless-retry-count": "1",
            }
            seen = (await client.get("http://loci/v1/agents/?limit=1", headers=headers)).json()
            assert seen["target"] == "/base/v1/agents/?limit=1"
            sent = seen["headers"]
            assert sent["authorization"] == "Bearer loci-run-abc"
            assert sent["x-stainless-retry-count"] == "1"
            assert sent.keys().isdisjoint({"user_id", "x-bare-password", "x-loci-tenant"})
            for url in ("http://loci:8283/", "http://loci/%2e%2e/admin"):
                assert (await client.get(url)).status_code == 403
            with pytest.raises(httpx.ProxyError, match="403 Loci is http://loci"):
                await client.get("https://loci/")
        async with other.client("") as (client, _):
            answer = await client.get("http://loci/")
            assert (answer.status_code, "may not call Loci" in answer.text) == (403, True)


async def test_loci_may_be_called_through_a_tunnel(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(monkeypatch, settings(gateway_url=f"http://127.0.0.1:{made.plain.port}")) as other:
        tunnel = other.egress.tunnel(other.egress.policy_of(""), (), "loci-run-abc")
        async with other.proxy(tunnel) as proxy:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.rpartition(":")[2]))
            writer.write(b"CONNECT loci:80 HTTP/1.1\r\nhost: loci\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            for _ in range(2):
                writer.write(b"GET /v1/agents HTTP/1.1\r\nhost: loci\r\n\r\n")
                assert b"200 OK" in await reader.readuntil(b"\r\n\r\n")
                await reader.readuntil(b"}")
                await reader.readuntil(b"}")
            writer.close()
        assert [request.headers["authorization"] for request in made.plain.asked] == ["Bearer loci-run-abc"] * 2
