"""The duties of every real vendor: the cases of the contract suite that make sense where nobody writes the script."""

from __future__ import annotations

import asyncio
import struct
import zlib
from base64 import b64encode
from contextlib import aclosing
from dataclasses import replace

import orjson
import pytest

from services.llm_gateway.calls.coalesce import join_deltas
from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import (
    FinishReason,
    Image,
    Message,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from services.llm_gateway.core.provider_types import TYPES
from tests.live.conftest import Live
from tests.unit.llm_gateway.builders import results, system, tool, user

pytestmark = pytest.mark.timeout(180)

DICE = tool("roll_dice", required=["num_sides"], num_sides="integer")
COIN = tool("toss_coin", required=["times"], times="integer")
_ROUNDS = 3


def text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def calls_of(message: Message) -> list[ToolCall]:
    return [part for part in message.parts if isinstance(part, ToolCall)]


async def test_text_and_usage(live: Live) -> None:
    reply = await live.reply(live.ask(system("Be brief."), "Answer with the one word: hello"))
    assert "hello" in text_of(reply.message).lower()
    assert reply.finish_reason is FinishReason.STOP
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.completion_tokens > 0
    assert not reply.usage.estimated
    assert reply.provider_model


async def test_a_stream_is_the_text_in_pieces(live: Live) -> None:
    deltas, reply = await live.told(live.ask("Count from one to thirty in words, separated by commas."))
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    assert said == text_of(reply.message)
    assert "twenty" in said.lower()
    assert sum(isinstance(delta, TextDelta) for delta in deltas) > 1
    assert reply.finish_reason is FinishReason.STOP
    assert reply.usage.completion_tokens > 0


async def test_the_length_limit(live: Live) -> None:
    if live.model.capabilities.reasoning:
        pytest.skip(f"{live.model.handle} spends a short limit on thoughts")
    reply = await live.reply(live.ask("Count from one to a hundred in words.", max_output_tokens=20))
    assert reply.finish_reason is FinishReason.LENGTH


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_call_and_what_follows_its_result(live: Live, stream: bool) -> None:
    question = user("Use roll_dice to roll one die with 20 sides, then tell me the number that came up.")
    deltas, asked = await live.told(live.ask(question, tools=[DICE, COIN]), stream=stream)
    [call] = calls_of(asked.message)
    assert call.id
    assert (call.name, orjson.loads(call.arguments_json)) == ("roll_dice", {"num_sides": 20})
    assert asked.finish_reason is FinishReason.TOOL_CALLS
    pieces = [delta for delta in join_deltas(deltas) if isinstance(delta, ToolCallDelta)]
    assert [(one.id, one.name, one.arguments) for one in pieces] == (
        [(call.id, call.name, call.arguments_json)] if stream else []
    )
    history = (question, asked.message, results((call.id, "17")))
    answer = await live.reply(live.ask(*history, tools=[DICE, COIN]), stream=stream)
    assert "17" in text_of(answer.message)


async def test_parallel_calls(live: Live) -> None:
    """A model may still call one after the other; none may be lost, and no two have one id."""
    question = user("Call both tools now, in parallel: roll_dice with 6 sides, and toss_coin with 2 times.")
    history, called = [question], []
    for _ in range(_ROUNDS):
        reply = await live.reply(live.ask(*history, tools=[DICE, COIN]), stream=True)
        calls = calls_of(reply.message)
        assert len({call.id for call in calls}) == len(calls)
        called += [call.name for call in calls]
        if not calls or {"roll_dice", "toss_coin"} <= set(called):
            break
        history += [reply.message, results(*((call.id, "4") for call in calls))]
    assert sorted(called) == ["roll_dice", "toss_coin"]


async def test_an_image(live: Live) -> None:
    if not live.model.capabilities.vision:
        pytest.skip(f"{live.model.handle} takes no images")
    picture = Image(data=b64encode(red_square()).decode(), media_type="image/png")
    question = user("Which colour is this square? Answer with one word.", picture)
    assert "red" in text_of((await live.reply(live.ask(question))).message).lower()


async def test_reasoning(live: Live) -> None:
    if not live.model.capabilities.reasoning:
        pytest.skip(f"{live.model.handle} is not known to think")
    question = user("Which is larger, 17 * 23 or 19 * 21? Think first.")
    deltas, reply = await live.told(live.ask(question, settings=live.thinking))
    thoughts = [part for part in reply.message.parts if isinstance(part, Reasoning | RedactedReasoning)]
    assert thoughts or reply.usage.reasoning_tokens
    told = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert told == "".join(part.text for part in thoughts if isinstance(part, Reasoning))
    assert "19" in text_of(reply.message) or "399" in text_of(reply.message)
    # What it thought can be sent back.
    again = live.ask(question, reply.message, user("And their sum? Only the number."), settings=live.thinking)
    assert "790" in text_of((await live.reply(again)).message)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_wrong_key(live: Live, stream: bool) -> None:
    if not TYPES[live.config.type].needs_key:
        pytest.skip(f"{live.config.type} takes calls without a key")
    provider = live.with_key("sk-wrong-0123456789abcdef0123456789abcdef")
    with pytest.raises(errors.LlmAuthentication) as caught:
        _ = [event async for event in provider.generate(live.ask("hello"), live.model, stream=stream)]
    assert live.config.key_setting in caught.value.message
    await provider.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_an_unknown_model(live: Live, stream: bool) -> None:
    live.model = replace(live.model, name="no-such-model-of-anybody")
    with pytest.raises(errors.ModelNotFound) as caught:
        await live.told(live.ask("hello"), stream=stream)
    assert int(caught.value.metadata["status"]) >= 400


async def test_leaving_early_ends_the_call_and_the_next_one_works(live: Live) -> None:
    asked = live.ask("Count from one to two hundred in words.")
    async with aclosing(live.provider.generate(asked, live.model, stream=True)) as events:
        await anext(events)
        began = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - began < 2
    assert text_of((await live.reply(live.ask("Answer with the one word: hello"))).message)


async def test_models_are_listed(live: Live) -> None:
    listed = await live.provider.list_models(20.0)
    assert listed
    assert all(one.name for one in listed)


def red_square(size: int = 64) -> bytes:
    """A PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xe0\x10\x10" * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
