"""Attacks at the gateway's edge: a stream that was begun with a key that is revoked meanwhile, and guesses."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loci.agent.v1 import message_service_pb2
from services.common.guesses import MOST_A_MINUTE
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import StartGateway
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_keys import Keys, keys, shown

__all__ = ["keys"]
BODY = {"input": "hello", "stream_tokens": True}


@pytest.mark.parametrize("quiet", [False, True])
async def test_a_revoked_key_ends_its_streams(
    start_gateway: StartGateway, backend: Backend, keys: Keys, quiet: bool
) -> None:
    left = asyncio.Event()

    async def answer(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=samples.attached())
        try:
            for number in itertools.count(1):
                delta = samples.event(number, delta=samples.said(str(number)))
                yield message_service_pb2.StreamMessagesResponse(event=delta)
                await asyncio.sleep(1e6 if quiet else 0.02)
        finally:
            left.set()

    backend.on("StreamMessages", answer)
    edge = await start_gateway(key_cache=0.2)
    header = keys.add("developer")
    async with (
        asyncio.timeout(60),
        edge.http.stream("POST", f"/v1/agents/{AGENT_ID}/messages/stream", headers=header, json=BODY) as response,
    ):
        assert response.status_code == 200
        heard = ""
        async for text in response.aiter_text():
            heard += text
            keys.known.clear()
        await left.wait()
    # It says so in the protocol of its clients.
    assert "event: error" in heard
    assert "this key or token is not known" in heard
    assert heard.endswith("data: [DONE]\n\n")


async def test_a_revoked_key_ends_its_blocking_requests(
    start_gateway: StartGateway, backend: Backend, keys: Keys
) -> None:
    left = asyncio.Event()

    async def answer(_: Any) -> Any:
        keys.known.clear()
        try:
            await asyncio.sleep(1e6)
        finally:
            left.set()

    backend.on("SendMessages", answer)
    edge = await start_gateway(key_cache=0.2)
    path, header = f"/v1/agents/{AGENT_ID}/messages", keys.add("developer")
    async with asyncio.timeout(60):
        refused = await edge.http.post(path, headers=header, json={"input": "hello"})
        await left.wait()
        again = await edge.http.post(path, headers=header, json={"input": "hello"})
    assert (refused.status_code, refused.json()) == (401, again.json())


async def test_guesses_are_slowed(start_gateway: StartGateway, keys: Keys) -> None:
    edge = await start_gateway(password="geheim")
    key = keys.add("developer")
    path = "/v1/whoami"
    assert (await edge.http.get(path, headers=key)).status_code == 200
    answers = [(await edge.http.get(path, headers=shown(f"guess-{n}"))).status_code for n in range(3 * MOST_A_MINUTE)]
    assert answers[:MOST_A_MINUTE] == [401] * MOST_A_MINUTE
    assert 429 in answers
    # While it waits, a right one that was never shown is refused, and one that was is not.
    for number in itertools.count():
        await edge.http.get(path, headers=shown("guess"))
        refused = await edge.http.get(path, headers=shown("geheim") | {"x-bare-password": f"password {number}"})
        if refused.status_code != 200:  # else a second went by
            break
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert "wrong passwords" in refused.json()["detail"]
    assert (await edge.http.get(path, headers=key)).status_code == 200
