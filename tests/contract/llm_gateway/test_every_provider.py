"""The common behaviour of all providers: text, tools, parallel tools, streaming, usage, limits, leaving early."""

from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest

from services.llm_gateway.calls.coalesce import join_deltas
from services.llm_gateway.core.chat import Completed, FinishReason, Text, TextDelta, ToolCall, ToolCallDelta
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import EmbeddingModel
from services.llm_gateway.core.trace import RequestPreview
from tests.contract.llm_gateway.conftest import World, calling
from tests.fakes import script
from tests.fakes.script import Reply
from tests.unit.llm_gateway.builders import assistant, results, system, tool, user

DICE = tool("roll_dice", num_sides="integer")
COIN = tool("toss_coin", times="integer")


async def test_text(world: World) -> None:
    world.script(Reply(text="Hello to you."))
    reply = await world.whole(world.ask(system("Be kind."), user("hello")))
    (part,) = reply.message.parts
    assert isinstance(part, Text)
    assert part.text.startswith("Hello")
    assert reply.finish_reason is FinishReason.STOP
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.completion_tokens > 0
    assert bool(reply.provider_response_id) is world.carries("response_id")
    assert reply.provider_model == (world.model.base_model or world.model.name)


async def test_streamed_text_is_the_whole_text_in_pieces(world: World) -> None:
    world.script(*[Reply(text="one two three")] * 2)
    asked = world.ask("hello")
    deltas, streamed = await world.streamed(asked)
    assert len(deltas) > 2
    (part,) = streamed.message.parts
    assert join_deltas(deltas) == [TextDelta(0, part.text if isinstance(part, Text) else "")]
    whole = await world.whole(asked)
    assert (streamed.message, streamed.finish_reason) == (whole.message, whole.finish_reason)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_call_and_what_follows_its_result(world: World, stream: bool) -> None:
    world.script(calling(script.ToolCall("roll_dice", {"num_sides": 20})), Reply(text="roll_dice returned: 17"))
    question = user("use roll_dice with num_sides=20")
    *_, completed = await world.events(world.ask(question, tools=[DICE, COIN]), stream=stream)
    assert isinstance(completed, Completed)
    (call,) = completed.generation.message.parts
    assert isinstance(call, ToolCall)
    assert call.id
    assert (call.name, orjson.loads(call.arguments_json)) == ("roll_dice", {"num_sides": 20})
    assert completed.generation.finish_reason is FinishReason.TOOL_CALLS
    answer = await world.whole(world.ask(question, assistant(call), results((call.id, "17")), tools=[DICE, COIN]))
    (text,) = answer.message.parts
    assert isinstance(text, Text)
    assert "17" in text.text


async def test_parallel_calls_stream_each_under_its_own_index_id_and_name(world: World) -> None:
    world.script(calling(script.ToolCall("roll_dice", {"num_sides": 6}), script.ToolCall("toss_coin", {"times": 2})))
    asked = world.ask("use roll_dice with num_sides=6 and toss_coin with times=2", tools=[DICE, COIN])
    deltas, reply = await world.streamed(asked)
    calls = [part for part in reply.message.parts if isinstance(part, ToolCall)]
    assert [call.name for call in calls] == ["roll_dice", "toss_coin"]
    assert len({call.id for call in calls}) == 2
    pieces = [delta for delta in join_deltas(deltas) if isinstance(delta, ToolCallDelta)]
    assert pieces == [ToolCallDelta(index, call.id, call.name, call.arguments_json) for index, call in enumerate(calls)]


async def test_a_history_with_parallel_calls_and_a_failure_is_accepted(world: World) -> None:
    world.script(Reply(text="Fine."))
    first, second = ToolCall("call_a", "roll_dice", '{"num_sides":6}'), ToolCall("call_b", "toss_coin", "{}")
    history = (
        user("roll and toss"),
        assistant("On it.", first, second),
        results(("call_a", "4"), ("call_b", "")),
        assistant("4."),
        user("hello"),
    )
    reply = await world.whole(world.ask(system("Be kind."), *history, tools=[DICE, COIN]))
    assert reply.finish_reason is FinishReason.STOP


async def test_the_length_limit(world: World) -> None:
    world.script(Reply(text="Hello the", finish=world.spec.length))
    reply = await world.whole(world.ask("hello", max_output_tokens=3))
    assert reply.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("stream", [False, True])
async def test_a_preview_is_the_body_that_is_sent(world: World, stream: bool) -> None:
    asked = world.ask(system("Be kind."), user("hello"), tools=[DICE])
    with pytest.raises(RequestPreview) as shown:
        await world.events(replace(asked, preview=True), stream=stream)
    body = orjson.loads(shown.value.body)
    if world.fake is None:
        assert body["messages"][-1]["content"] == "hello"
        return
    world.script(Reply(text="Hello."))
    await world.events(asked, stream=stream)
    assert world.sent.body == body


async def test_leaving_early_ends_the_call(world: World) -> None:
    world.script(Reply(text="one two three " * 200, delta_delay=0.02))
    async with aclosing(world.provider.generate(world.ask("hello"), world.model, stream=True)) as events:
        async for event in events:
            assert isinstance(event, TextDelta)
            break


async def test_the_model_is_listed(world: World) -> None:
    assert world.model.name in {listed.name for listed in await world.provider.list_models(30.0)}


async def test_embeddings(world: World) -> None:
    type_, (name, dimensions) = world.model.provider_type, world.spec.embedding
    embedder = EmbeddingModel(type_, type_, name, "", dimensions, 10, name)
    if not world.carries("embeddings"):
        with pytest.raises(LlmBadRequest, match="has no embeddings"):
            await world.provider.embed(embedder, ["a cat"])
        return
    embeddings = await world.provider.embed(embedder, ["a cat", "a dog", "a cat"])
    first, second, third = embeddings.vectors
    assert len(first) == dimensions
    assert list(first) == list(third) != list(second)
    assert sum(value * value for value in first) == pytest.approx(1, abs=1e-6)
    assert embeddings.prompt_tokens > 0
