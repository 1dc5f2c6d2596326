"""Calls by Responses over a WebSocket, and what is left out where an endpoint refuses it, against the fake."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from services.llm_gateway.core.chat import (
    ChatRequest,
    Completed,
    Event,
    Generation,
    Message,
    Reasoning,
    RedactedReasoning,
    Text,
    TextDelta,
    ToolCall,
)
from services.llm_gateway.core.errors import LlmBadRequest, LlmStreamIncomplete, LlmTimeout
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.http.client import PrivateAddress, WebSockets, http_client
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from services.llm_gateway.vendors.responses import websocket
from tests.fakes import script
from tests.fakes.http import Exchange, HttpServer, Request
from tests.fakes.responses_rules import FOREIGN
from tests.fakes.responses_server import ResponsesServer
from tests.fakes.script import Reply
from tests.polling import until
from tests.unit.llm_gateway.builders import assistant, config, model, request, results, system, tool, user

GPT5 = model("openai/gpt-5")
DICE = tool("roll", n="integer")
ROLL = script.ToolCall("roll", {"n": 6}, id="c1")


@pytest.fixture
async def fake() -> AsyncIterator[ResponsesServer]:
    async with ResponsesServer().running() as server:
        yield server


@pytest.fixture
async def provider(fake: ResponsesServer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider(configured(fake))
    yield made
    await made.close()


def configured(fake: ResponsesServer, **options: Any) -> ProviderConfig:
    return config("openai", fake.base_url, is_vendor=True, stall_seconds=30.0, reply_seconds=30.0, **options)


def ask(*messages: Message, run: str = "run-1", **options: Any) -> ChatRequest:
    fields = {"websocket": True, "run_key": run, "tools": [DICE], **options}
    return request(*messages, handle="openai/gpt-5", **fields)


async def reply_to(provider: OpenAIProvider, asked: ChatRequest, *, stream: bool = True) -> Generation:
    *_, completed = [event async for event in provider.generate(asked, GPT5, stream=stream)]
    assert isinstance(completed, Completed)
    return completed.generation


def ways(fake: ResponsesServer) -> list[str]:
    """Returns how each request came, and whether it went on from another."""
    return [
        f"{'socket' if one.method == 'WEBSOCKET' else 'http'}{' on' if one.body.get('previous_response_id') else ''}"
        for one in fake.requests
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_sends_only_what_is_new(fake: ResponsesServer, provider: OpenAIProvider, stream: bool) -> None:
    fake.reply(
        Reply(reasoning="a roll", redacted="opaque", text="Rolling.", calls=[ROLL]),
        Reply(calls=[script.ToolCall("roll", {"n": 8}, id="c2")]),
        Reply(text="4 and 7."),
    )
    history = [system("Be kind."), user("Roll twice.")]
    first = await reply_to(provider, ask(*history), stream=stream)
    history += [first.message, results(("c1", "4"))]
    second = await reply_to(provider, ask(*history), stream=stream)
    history += [second.message, results(("c2", "7"))]
    third = await reply_to(provider, ask(*history, tools=[DICE, tool("more")]), stream=stream)
    assert list(third.message.parts) == [Text("4 and 7.")]
    assert ways(fake) == ["socket", "socket on", "socket on"]
    assert fake.opened == 1
    bodies = fake.bodies()
    assert [body["input"] for body in bodies[1:]] == [
        [{"type": "function_call_output", "call_id": "c1", "output": "4"}],
        [{"type": "function_call_output", "call_id": "c2", "output": "7"}],
    ]
    assert bodies[2]["previous_response_id"] == second.provider_response_id
    # Nothing but the history is kept at the vendor's.
    assert [body["instructions"] for body in bodies] == ["Be kind."] * 3
    assert len(bodies[2]["tools"]) == 2


async def test_a_history_that_is_another_is_sent_whole(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    fake.reply(*[Reply(text="So.")] * 3)
    said = (await reply_to(provider, ask(user("one")))).message
    await reply_to(provider, ask(user("a summary"), said, user("two")))
    other = replace(GPT5, name="gpt-5-mini")
    again = ask(user("a summary"), said, user("two"), assistant("So."), user("three"))
    _ = [event async for event in provider.generate(again, other, stream=True)]
    assert ways(fake) == ["socket"] * 3
    assert fake.opened == 1
    assert len(fake.bodies()[-1]["input"]) == 5


async def test_each_run_has_a_connection_and_one_without_a_run_has_none(
    fake: ResponsesServer, provider: OpenAIProvider
) -> None:
    await asyncio.gather(*(reply_to(provider, ask(user("hi"), run=f"run-{n}")) for n in range(3)))
    await reply_to(provider, ask(user("hi"), run=""))
    await reply_to(provider, ask(user("hi"), websocket=False))
    assert sorted(ways(fake)) == ["http", "http", "socket", "socket", "socket"]
    assert fake.opened == 3


async def test_the_providers_option_asks_for_it_too_but_where_calls_are_recorded(
    fake: ResponsesServer, tmp_path: Path
) -> None:
    for record_to in ("", str(tmp_path)):
        provider = OpenAIProvider(configured(fake, options={"websocket": True}, record_to=record_to))
        await reply_to(provider, ask(user("hi"), websocket=False))
        await provider.close()
    assert ways(fake) == ["socket", "http"]


async def test_two_calls_of_a_run_at_once(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    fake.rules(script.Rule(Reply(text="slow", first_delay=0.2)))
    await asyncio.gather(*(reply_to(provider, ask(user("hi"))) for _ in range(2)))
    assert sorted(ways(fake)) == ["http", "socket"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_that_was_lost_costs_no_turn(
    fake: ResponsesServer, provider: OpenAIProvider, stream: bool
) -> None:
    fake.reply(
        Reply(calls=[ROLL]), Reply(text="lost", truncate_after=2), Reply(text="lost", end_after=0), Reply(text="4")
    )
    said = (await reply_to(provider, ask(user("roll")), stream=stream)).message
    answer = await reply_to(provider, ask(user("roll"), said, results(("c1", "4"))), stream=stream)
    assert list(answer.message.parts) == [Text("4")]
    assert ways(fake) == ["socket", "socket on", "socket", "http"]
    assert [len(body["input"]) for body in fake.bodies()] == [1, 1, 3, 3]


async def test_a_server_that_closed_meanwhile(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    said = (await reply_to(provider, ask(user("one")))).message
    fake.close_connections()
    await reply_to(provider, ask(user("one"), said, user("two")))
    assert fake.opened == 2
    assert len(fake.bodies()[-1]["input"]) == 3


async def test_after_its_time_the_run_goes_on_with_a_new_connection(
    fake: ResponsesServer, provider: OpenAIProvider
) -> None:
    fake.lifetime = 1
    history = [user("one")]
    for _ in range(3):
        history += [(await reply_to(provider, ask(*history))).message, user("on")]
    assert ways(fake) == ["socket", "socket on", "socket", "socket on", "socket"]
    assert fake.opened == 3


async def test_what_was_shown_is_not_said_twice(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    fake.reply(Reply(text="one two three", truncate_after=6))
    shown: list[Event] = []

    async def show() -> None:
        async for event in provider.generate(ask(user("hi")), GPT5, stream=True):
            shown.append(event)

    with pytest.raises(LlmStreamIncomplete):
        await show()
    assert shown[0] == TextDelta(0, "one ")
    assert ways(fake) == ["socket"]


async def test_leaving_closes_the_connection_and_the_next_call_opens_one(
    fake: ResponsesServer, provider: OpenAIProvider
) -> None:
    fake.reply(Reply(text="word " * 1_000, delta_delay=0.06))
    async with aclosing(provider.generate(ask(user("hi")), GPT5, stream=True)) as events:
        async for _ in events:
            break
    await until(lambda: fake.requests[-1].outcome == "gone")
    await reply_to(provider, ask(user("hi")))
    assert ways(fake) == ["socket", "socket"]
    assert fake.opened == 2


async def test_a_silent_one_is_given_up(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    fake.reply(Reply(text="a b c", stall_after=6))
    with pytest.raises(LlmTimeout, match=r"sent nothing for 0\.2 s"):
        await reply_to(provider, ask(user("hi"), stall_timeout=0.2))
    assert fake.opened == 1


async def test_an_endpoint_without_websockets_is_called_over_http(fake: ResponsesServer) -> None:
    fake.websockets = False
    provider = OpenAIProvider(configured(fake))
    for _ in range(2):
        await reply_to(provider, ask(user("hi")))
    assert ways(fake) == ["http", "http"]
    # The second call did not try again.
    assert fake.connections == 2
    await provider.close()


async def test_what_is_idle_or_too_much_is_closed(fake: ResponsesServer, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"most": 2, "idle_seconds": 60.0, "longest_seconds": 60.0}
    monkeypatch.setattr(websocket.Sockets.__init__, "__kwdefaults__", limits)
    provider = OpenAIProvider(configured(fake))
    for run in ("a", "b", "c"):
        await reply_to(provider, ask(user("hi"), run=run))
    assert list(provider._responses._sockets._idle) == ["b", "c"]
    await provider.close()
    monkeypatch.setattr(websocket.Sockets.__init__, "__kwdefaults__", {**limits, "idle_seconds": 0.05})
    provider = OpenAIProvider(configured(fake))
    await reply_to(provider, ask(user("hi")))
    sockets = provider._responses._sockets
    await until(lambda: not (sockets._idle or sockets._closing))
    await provider.close()


async def test_one_that_is_old_is_replaced(fake: ResponsesServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        websocket.Sockets.__init__, "__kwdefaults__", {"most": 2, "idle_seconds": 60, "longest_seconds": 0}
    )
    provider = OpenAIProvider(configured(fake))
    for _ in range(2):
        await reply_to(provider, ask(user("hi")))
    assert fake.opened == 2
    await provider.close()


async def test_thoughts_that_are_refused_are_left_out(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    fake.reply(Reply(text="Yes."))
    history = [user("hi"), assistant(Reasoning("so", f"openai:rs_1:{FOREIGN}"), "so"), user("sure?")]
    for over in (True, False):
        assert list((await reply_to(provider, ask(*history, websocket=over))).message.parts)
    kinds = [[item["type"] for item in body["input"]] for body in fake.bodies()]
    assert kinds == [["message", "reasoning", "message", "message"], ["message"] * 3] * 2


async def test_other_refusals_are_not_asked_again(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    fake.reply(Reply(error="bad_request", message="It is too blue."))
    with pytest.raises(LlmBadRequest, match="too blue"):
        await reply_to(provider, ask(user("hi")))
    assert len(fake.requests) == 1


async def test_an_account_without_summaries(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    said = "Your organization must be verified to generate reasoning summaries."
    fake.reply(Reply(error="bad_request", message=said))
    for _ in range(2):
        await reply_to(provider, ask(user("hi"), websocket=False))
    assert ["summary" in body["reasoning"] for body in fake.bodies()] == [True, False, False]


async def test_another_vendors_thoughts_are_not_shown(fake: ResponsesServer, provider: OpenAIProvider) -> None:
    call = ToolCall("toolu_1", "roll", '{"n":6}')
    said = assistant(Reasoning("so", "sig-of-anthropic"), RedactedReasoning("azure:rs_1:x"), call)
    await reply_to(provider, ask(user("hi"), said, results(("toolu_1", "4"))))
    [body] = fake.bodies()
    assert [item["type"] for item in body["input"]] == ["message", "function_call", "function_call_output"]


# What may be called.


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "169.254.169.254"])
async def test_tenants_open_no_websocket_to_a_private_address(host: str) -> None:
    async with ResponsesServer().running() as fake:
        opener = WebSockets(replace(configured(fake), allow_private=False))
        with pytest.raises((aiohttp.ClientConnectorError, PrivateAddress)):
            await opener.open(f"ws://{host}:{fake.port}/v1/responses", {})
        assert fake.connections == 0
        await opener.close()


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "2852039166"])
async def test_nobody_calls_the_metadata_of_a_cloud(fake: ResponsesServer, host: str) -> None:
    opener, client = WebSockets(configured(fake)), http_client(configured(fake))
    with pytest.raises(PrivateAddress):
        await opener.open(f"ws://{host}/v1/responses", {})
    with pytest.raises(PrivateAddress):
        await client.get(f"http://{host}/latest/meta-data/")
    await opener.close()
    await client.aclose()


async def test_a_redirect_is_not_followed(fake: ResponsesServer) -> None:
    async def redirect(_: Request, exchange: Exchange) -> None:
        await exchange.send(302, {"location": f"{fake.base_url}/responses"}, b"")

    opener = WebSockets(configured(fake))
    async with HttpServer(redirect) as server:
        with pytest.raises(aiohttp.ClientConnectionError, match="redirect"):
            await opener.open(f"ws://127.0.0.1:{server.port}/v1/responses", {"authorization": "Bearer sk-test"})
    assert fake.connections == 0
    await opener.close()


def test_digests_tell_items_apart() -> None:
    items: Sequence[Any] = [{"type": "message", "content": "a"}, {"type": "message", "content": "b"}]
    assert len(set(websocket.digests(items))) == 2
    assert websocket.digests(items) == websocket.digests([dict(item) for item in items])
