"""Requests handed on to vendors as they are: the gateway on a real Postgres, with the fake Anthropic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from loci.llm.v1 import forward_service_pb2 as wire
from loci.llm.v1.forward_service_pb2_grpc import ForwardServiceStub
from services.common.channel import make_channel
from services.common.errors import from_rpc
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.script import Reply, Usage
from tests.integration.llm_gateway.harness import AGENT, Gateway, gateway_service
from tests.polling import until

MODEL = "claude-haiku-4-5"
VERSION = {"anthropic-version": "2023-06-01", "content-type": "application/json"}


@pytest.fixture
async def stub(gateway: Gateway) -> AsyncIterator[Any]:
    async with make_channel(gateway.address) as channel:
        yield ForwardServiceStub(channel)


def asked(path: str = "v1/messages", method: str = "POST", **fields: Any) -> wire.ForwardRequest:
    body = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
    said = json.dumps(body | fields.pop("body", {})).encode() if method == "POST" else b""
    given: dict[str, Any] = {"provider_type": "anthropic", "headers": VERSION, "agent_id": AGENT}
    return wire.ForwardRequest(method=method, path=path, body=said, **given | fields)


async def answer(stub: Any, request: wire.ForwardRequest) -> tuple[wire.ForwardHead, bytes, str]:
    first, *chunks, last = [event async for event in stub.Forward(request)]
    assert (first.WhichOneof("event"), last.WhichOneof("event")) == ("head", "end")
    return first.head, b"".join(event.chunk for event in chunks), last.end.text


async def refusal(stub: Any, request: wire.ForwardRequest) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        await answer(stub, request)
    return from_rpc(refused.value).reason


@pytest.mark.parametrize("stream", [False, True])
async def test_a_message_goes_there_and_back_and_is_accounted(
    gateway: Gateway, stub: Any, anthropic_fake: AnthropicServer, stream: bool
) -> None:
    anthropic_fake.reply(Reply(text="Hello Ada.", usage=Usage(100, 7, cached=40)))
    head, body, text = await answer(stub, asked(body={"stream": stream}))
    assert (head.status, text) == (200, "Hello Ada.")
    assert head.headers["content-type"].startswith("text/event-stream" if stream else "application/json")
    assert b"Hello" in body
    [row] = await gateway.usage()
    assert (row["handle"], row["prompt_tokens"], row["completion_tokens"]) == (f"anthropic/{MODEL}", 140, 7)
    assert (row["cached_input_tokens"], row["estimated"], row["cost_nanos_usd"] > 0) == (40, False, True)


async def test_refusals_are_answers(gateway: Gateway, stub: Any, anthropic_fake: AnthropicServer) -> None:
    anthropic_fake.reply(Reply(error="rate_limit", message="slow down", retry_after=3))
    head, body, text = await answer(stub, asked())
    assert (head.status, head.headers["retry-after"], text) == (429, "3", "")
    assert json.loads(body)["error"]["message"] == "slow down"
    assert await gateway.usage() == []


async def test_with_a_key_of_ones_own_others_pay(gateway: Gateway, stub: Any, anthropic_fake: AnthropicServer) -> None:
    await answer(stub, asked(own_key="sk-ant-mine"))
    assert anthropic_fake.requests[-1].headers["authorization"] == "Bearer sk-ant-mine"
    # The fake knows no files; that it was asked is what counts.
    head, _, _ = await answer(stub, asked("v1/files", "GET", own_key="sk-ant-mine"))
    assert head.status == 404
    assert await gateway.usage() == []


async def test_what_is_not_handed_on(stub: Any, anthropic_fake: AnthropicServer) -> None:
    head, body, _ = await answer(stub, asked("v1/models", "GET", query="limit=1000"))
    assert (head.status, len(json.loads(body)["data"]) > 0) == (200, True)
    before = len(anthropic_fake.requests)
    for path in ("v1/../admin", "..", "v1//models", "/v1/models", "http://other/v1", "v1/%2e%2e/x", "v1\\x", "v1/x?y"):
        assert await refusal(stub, asked(path, "GET")) == "LLM_BAD_REQUEST", path
    for fields in ({"query": "a#b"}, {"query": "a b"}, {"own_key": "sk-ant-\nx"}, {"provider_type": "openai"}):
        assert await refusal(stub, asked("v1/models", "GET", **fields)) == "LLM_BAD_REQUEST", fields
    assert await refusal(stub, asked("v1/models", "TRACE")) == "LLM_BAD_REQUEST"
    # What other tenants may keep on the operator's account.
    for method, path in (("GET", "v1/files"), ("GET", "v1/messages/batches"), ("DELETE", "v1/models/x")):
        assert await refusal(stub, asked(path, method)) == "FORWARD_NOT_PERMITTED", path
    assert await refusal(stub, asked(provider_type="zai")) == "PROVIDER_NOT_FOUND"
    assert len(anthropic_fake.requests) == before


async def test_a_reader_that_leaves_ends_the_request(
    gateway: Gateway, stub: Any, anthropic_fake: AnthropicServer
) -> None:
    anthropic_fake.reply(Reply(text="one two three four five six", delta_delay=5))
    call = stub.Forward(asked(body={"stream": True}))
    while not (await call.read()).chunk:
        pass
    call.cancel()
    await until(lambda: anthropic_fake.requests[-1].outcome == "gone")
    [row] = await gateway.accounted()
    assert (row["estimated"], row["prompt_tokens"] > 0) == (True, True)


async def test_zai_speaks_the_dialect_beside_its_own(
    gateway_url: str, tmp_path: Path, anthropic_fake: AnthropicServer
) -> None:
    urls = {"ZAI_API_KEY": "z-1", "ZAI_BASE_URL": f"{anthropic_fake.base_url}/api/paas/v4"}
    async with gateway_service(gateway_url, tmp_path, urls) as service, make_channel(service.address) as channel:
        head, _, _ = await answer(ForwardServiceStub(channel), asked(provider_type="zai"))
    # The fake is at another path; that it was asked there is what counts.
    sent = anthropic_fake.requests[-1]
    assert (head.status, sent.path) == (404, "/api/anthropic/v1/messages")
    assert (sent.headers["x-api-key"], sent.headers["authorization"]) == ("z-1", "Bearer z-1")


async def test_budgets_end_it(gateway_url: str, tmp_path: Path, anthropic_fake: AnthropicServer) -> None:
    settings = {"ANTHROPIC_BASE_URL": anthropic_fake.base_url, "LOCI_BUDGETS": '{"day": {"requests": 1}}'}
    async with gateway_service(gateway_url, tmp_path, settings) as service, make_channel(service.address) as channel:
        stub = ForwardServiceStub(channel)
        assert (await answer(stub, asked()))[0].status == 200
        assert await refusal(stub, asked()) == "LLM_BUDGET_EXHAUSTED"
        assert (await answer(stub, asked(own_key="sk-ant-mine")))[0].status == 200
