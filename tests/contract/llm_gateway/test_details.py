"""Details of replies that a request asks for: log probabilities, token ids, the trace; and counts of tokens."""

from dataclasses import replace
from typing import Any

import orjson
import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import Completed, Generation, Reasoning, ToolCall
from services.llm_gateway.core.trace import METADATA_KEY, MOST_BYTES, MOST_BYTES_IN_ERROR
from services.llm_gateway.vendors.anthropic.client import AnthropicProvider
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.contract.llm_gateway.conftest import WORLDS, World
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.script import Reply, Rule
from tests.unit.llm_gateway.builders import assistant, config, model, results, system, tool, user


async def reply_to(world: World, *messages: Any, stream: bool, **options: Any) -> Generation:
    *_, completed = await world.events(world.ask(*(messages or ("hello",)), **options), stream=stream)
    assert isinstance(completed, Completed)
    return completed.generation


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("world", ["openai"], indirect=True)
async def test_log_probabilities_and_token_ids(world: World, stream: bool) -> None:
    world.script(Reply(text="one two three"))
    reply = await reply_to(world, stream=stream, logprobs=True, top_logprobs=2, token_ids=True)
    logprobs = orjson.loads(reply.logprobs_json)
    assert [token["token"] for token in logprobs["content"]] == ["one ", "two ", "three"]
    assert [token["logprob"] for token in logprobs["content"]] == [-0.25, -0.5, -0.75]
    assert [len(token["top_logprobs"]) for token in logprobs["content"]] == [2, 2, 2]
    assert logprobs["refusal"] is None
    assert list(reply.token_ids) == [1000, 1001, 1002]
    rows = [[-0.25, 1000, "one "], [-0.5, 1001, "two "], [-0.75, 1002, "three"]]
    assert orjson.loads(reply.token_logprobs_json) == rows


@pytest.mark.parametrize("stream", [False, True])
async def test_they_come_only_where_they_are_asked_for_and_given(world: World, stream: bool) -> None:
    world.script(*[Reply(text="one two")] * 2)
    plain = await reply_to(world, stream=stream)
    assert (plain.logprobs_json, list(plain.token_ids), plain.token_logprobs_json) == ("", [], "")
    asked = await reply_to(world, stream=stream, logprobs=True, top_logprobs=20, token_ids=True)
    given = world.carries("logprobs")
    assert [bool(asked.logprobs_json), bool(asked.token_logprobs_json)] == [given] * 2
    assert bool(asked.token_ids) is world.carries("token_ids")


@pytest.mark.parametrize("world", ["openai"], indirect=True)
async def test_the_vendor_itself_is_not_asked_for_ids_and_thinking_models_for_nothing(world: World) -> None:
    chat = {"responses": False}
    world.provider = OpenAIProvider(config("openai", world.vendor.base_url, is_vendor=True, options=chat))
    world.script(*[Reply(text="one two")] * 2)
    reply = await reply_to(world, stream=False, token_ids=True)
    assert "return_token_ids" not in world.vendor.requests[-1].body
    assert orjson.loads(reply.token_logprobs_json) == [[-0.25, None, "one "], [-0.5, None, "two"]]
    world.model = model("openai/gpt-5")
    assert (await reply_to(world, stream=False, logprobs=True, token_ids=True)).logprobs_json == ""
    await world.provider.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_trace(world: World, stream: bool) -> None:
    world.script(*[Reply(text="one two")] * 2)
    assert (await reply_to(world, "a question", stream=stream)).trace_json == ""
    reply = await reply_to(world, "a question", stream=stream, trace=True)
    trace = orjson.loads(reply.trace_json)
    assert trace.keys() == {"request", "response"}
    assert "a question" in orjson.dumps(trace["request"]).decode()
    if world.fake is not None:
        assert trace["request"] == world.sent.body
        assert isinstance(trace["response"], list if stream or world.spec.framing == "websocket" else dict)
        assert not stream or all(isinstance(event, dict) for event in trace["response"])
        assert world.spec.id_in_headers or reply.provider_response_id in reply.trace_json
    assert "sk-test" not in reply.trace_json
    assert "uthorization" not in reply.trace_json


async def test_a_large_trace_is_cut(vendor_world: World) -> None:
    vendor_world.script(Reply(text="x" * 300_000))
    asked = ["short", "y" * 400_000]
    reply = await reply_to(vendor_world, user(*asked), stream=False, trace=True)
    assert len(reply.trace_json.encode()) <= MOST_BYTES
    trace = orjson.loads(reply.trace_json)
    assert trace["request"].keys() == vendor_world.sent.body.keys()
    assert "short" in orjson.dumps(trace["request"]).decode()
    # The question and the answer, which a WebSocket says again in its last events.
    cuts = reply.trace_json.count("...cut")
    assert cuts > 2 if vendor_world.spec.framing == "websocket" else cuts == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_call_takes_its_trace_along_where_it_is_short(vendor_world: World, stream: bool) -> None:
    for text, kept in (("short", True), ("long " * 1000, False)):
        vendor_world.script(Reply(error="bad_request", message="It is too blue."))
        with pytest.raises(errors.LlmBadRequest) as caught:
            await reply_to(vendor_world, text, stream=stream, trace=True)
        trace = caught.value.metadata.get(METADATA_KEY, "")
        assert bool(trace) is kept
        assert len(trace) <= MOST_BYTES_IN_ERROR
        if kept:
            assert orjson.loads(trace)["request"] == vendor_world.sent.body
            assert "It is too blue." in trace
            assert "sk-test" not in trace
    vendor_world.script(Reply(error="bad_request"))
    with pytest.raises(errors.LlmBadRequest) as caught:
        await reply_to(vendor_world, stream=stream)
    assert METADATA_KEY not in caught.value.metadata


async def test_a_stream_that_breaks_off_takes_along_what_came(vendor_world: World) -> None:
    vendor_world.script(*[Reply(text="one two three four five", truncate_after=4)] * vendor_world.spec.tries)
    with pytest.raises(errors.LlmStreamIncomplete) as caught:
        await reply_to(vendor_world, stream=True, trace=True)
    trace = orjson.loads(caught.value.metadata[METADATA_KEY])
    assert len(trace["response"]) == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_an_overflow_tells_the_window(vendor_world: World, stream: bool) -> None:
    vendor_world.script(Reply(error="context_overflow"))
    with pytest.raises(errors.LlmContextOverflow) as caught:
        await reply_to(vendor_world, stream=stream)
    told = tuple(caught.value.metadata.get(name) for name in ("limit", "requested"))
    assert told == tuple(None if size is None else str(size) for size in vendor_world.spec.overflow)


@pytest.mark.parametrize("world", ["demo"], indirect=True)
async def test_the_demos_overflow_tells_it_too(world: World) -> None:
    world.model = replace(world.model, context_window=50)
    with pytest.raises(errors.LlmContextOverflow) as caught:
        await reply_to(world, "x" * 1000, stream=False)
    assert caught.value.metadata["limit"] == "50"
    assert int(caught.value.metadata["requested"]) > 250


async def test_tokens_are_counted_where_the_provider_counts_them(world: World) -> None:
    call = ToolCall("c1", "roll", '{"n":6}')
    history = (system("Be kind."), user("Roll."), assistant(Reasoning("Six.", "sig"), call), results(("c1", "4")))
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "effort": "low", "service_tier": "auto"}
    asked = world.ask(*history, tools=[tool("roll", n="integer")], settings=thinking, max_output_tokens=2000)
    counted = await world.provider.count_tokens(asked, world.model)
    if not world.carries("count"):
        assert counted is None
        return
    assert counted is not None
    if world.spec.dialect != "anthropic":
        more = await world.provider.count_tokens(world.ask(*history, user("again " * 100)), world.model)
        assert 0 < counted < (more or 0)
        return
    assert counted == len(orjson.dumps(world.vendor.requests[-1].body["messages"])) // 4
    sent = world.vendor.requests[-1]
    assert sent.path == "/v1/messages/count_tokens"
    assert sent.body.keys() == {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"}


async def test_a_compatible_server_without_the_count_is_estimated_for() -> None:
    async with AnthropicServer(counts_tokens=False).running() as fake:
        for is_vendor in (False, True):
            provider = AnthropicProvider(config("anthropic", fake.base_url, is_vendor=is_vendor))
            world = World(provider, WORLDS["anthropic"].model(), fake, WORLDS["anthropic"])
            if is_vendor:
                with pytest.raises(errors.ModelNotFound):
                    await provider.count_tokens(world.ask("hello"), world.model)
            else:
                assert await provider.count_tokens(world.ask("hello"), world.model) is None
            await provider.close()


@pytest.mark.parametrize("vendor_world", ["anthropic"], indirect=True)
async def test_a_count_that_is_refused(vendor_world: World) -> None:
    vendor_world.vendor.rules(Rule(Reply(error="rate_limit", retry_after=2), route="count"))
    with pytest.raises(errors.LlmRateLimit) as caught:
        await vendor_world.provider.count_tokens(vendor_world.ask("hello"), vendor_world.model)
    assert caught.value.retry_after == 2
