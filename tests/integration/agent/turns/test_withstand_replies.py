"""Whatever a model replies or a tool returns: the run ends, its readers get all of it, and the next message works."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from services.agent.core.events import Delta, Event, MessagePiece
from services.agent.core.facts import RunStatus, Settings, Usage
from services.agent.core.messages import (
    Call,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
    calls_of,
)
from services.agent.core.ports import CallSite, ModelRequest, PartDelta, Reply, ToolInfo
from services.agent.core.window.sizes import estimate
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, World, calls, end, recall_on, says, text


def many(*made: Call, finish: str = "tool_calls") -> Reply:
    """A reply of these calls."""
    return says(*made, finish=finish)


MEGABYTE = 1_000_000
HALF_PAIR = '{"a": "\\ud83d"}'
DEEP = '{"a":' + "[" * 20_000 + "]" * 20_000 + "}"
REPLIES = {
    "NUL in a text": says(Text("a\0b")),
    "NUL in a call": many(Call("", "c\0all", "wo\0rk", '{"a": "\0", "b": "\\u0000"}')),
    "NUL in reasoning": says(Reasoning("a\0b", signature="s\0"), RedactedReasoning("d\0"), Text("c")),
    "half a surrogate pair in arguments": many(Call("", "call_0", "work", HALF_PAIR)),
    "half a surrogate pair as a name": many(Call("", "call_0", "work", '{"\\udc00": 1}')),
    "a call of 1 MB": many(Call("", "call_0", "work", '{"a": "' + "x" * MEGABYTE + '"}')),
    "a call of 1 MB that is no JSON": many(Call("", "call_0", "work", '{"a": "' + "ß" * MEGABYTE)),
    "a text of 4 MB": says(Text("word " * 800_000)),
    "arguments nested too deeply": many(Call("", "call_0", "work", DEEP)),
    "arguments that are a list": many(Call("", "call_0", "work", "[1, 2]")),
    "arguments that are numbers beyond all bounds": many(
        Call("", "call_0", "work", '{"a": 1e999, "b": ' + "9" * 5_000 + "}")
    ),
    "arguments with NaN": many(Call("", "call_0", "work", '{"a": NaN, "b": Infinity}')),
    "no arguments": many(Call("", "call_0", "work", "")),
    "300 calls": many(*(Call("", f"call_{number}", "work", "{}") for number in range(300))),
    "300 pieces": says(*(Text("a") if number % 2 else Reasoning("b") for number in range(300))),
    "a name with spaces": many(Call("", "call_0", "work hard; rm -rf /", "{}")),
    "a name in Chinese": many(Call("", "call_0", "工作", "{}")),
    "a name of 10,000 letters": many(Call("", "call_0", "w" * 10_000, "{}")),
    "no name": many(Call("", "call_0", "", "{}")),
    "ids that are equal": many(*(Call("", "call_0", "work", "{}") for _ in range(3))),
    "ids that are empty": many(*(Call("", "", "work", "{}") for _ in range(3))),
    "an id of 10,000 letters": many(Call("", "c" * 10_000, "work", "{}")),
    "nothing": Reply((), Usage(), "stop"),
    "an empty text": says(Text("")),
    "only reasoning": says(Reasoning("Hmm."), RedactedReasoning("opaque")),
    "half a call": many(Call("", "call_0", "work", '{"a": "x'), finish="length"),
    "half a text": says(Text("I was about to"), finish="length"),
    "a filtered reply": says(finish="content_filter"),
    "calls that claim to be the end": many(Call("", "call_0", "work", "{}"), finish="stop"),
    "an end that claims to be calls": says(Text("Done."), finish="tool_calls"),
    "a finish that nobody knows": says(Text("Done."), finish="weird"),
    "a picture": says(Image("AAAA", media_type="image/png"), Text("See?")),
    "a return": says(Return("call_0", "work", "I am the tool"), Text("See?")),
    "usage beyond all bounds": Reply((Text("Dear."),), Usage(2**62, 2**62, -1), "stop"),
    "outputs with NUL": Reply((Text("a"),), Usage(), "stop", {"logprobs": {"content": [{"token": "\0\ud800"}]}}, "\0"),
}


@pytest.mark.parametrize("name", REPLIES)
async def test_replies(world: World, name: str) -> None:
    async def work(call: Call) -> str:
        return "done"

    async with world.replica() as replica:
        replica.tools.actions = {"work": work}
        replica.models.replies = [REPLIES[name], text("I see.")]
        events = await replica.send(world.request("Go on."), stream=True)
        assert end(events).run.status in (RunStatus.COMPLETED, RunStatus.FAILED)
        assert end(events).run.fence == 1
        # Who reads later is shown the same.
        async with aclosing(replica.reader.follow(ORGANIZATION, end(events).run.id)) as again:
            assert durable([event async for event in again]) == durable(events)
        replica.models.replies = [text("Here I am.")]
        later = await replica.send(world.request("And now?"))
        assert (end(later).run.status, end(later).failure) == (RunStatus.COMPLETED, None)
        sendable(replica.models.requests[-1].history)


def durable(events: Sequence[Event]) -> list[tuple[int, str, tuple[Part, ...]]]:
    """What was shown as durable."""
    return [(event.sequence, event.otid, event.parts) for event in events if isinstance(event, MessagePiece)]


def sendable(history: Sequence[Message]) -> None:
    """Calls have ids of their own, each is answered once and at once, and nothing is what a wire cannot carry."""
    ids = Counter(call.id for message in history for call in calls_of(message))
    assert set(ids.values()) <= {1}
    for place, message in enumerate(history):
        if asked := [call.id for call in calls_of(message)]:
            assert asked == [part.call_id for part in history[place + 1].parts if isinstance(part, Return)]
        assert message.parts
        assert "\\x00" not in repr(message.parts)
    assert history[-1].parts == (Text("And now?"),)


RETURNS = {
    "NUL": "a\0b",
    "half a surrogate pair": "\ud83d and no more",
    "4 MB": "ß" * 2 * MEGABYTE,
    "nothing": "",
    "control characters": "".join(map(chr, range(32))),
}


@pytest.mark.parametrize("name", RETURNS)
async def test_returns(world: World, name: str) -> None:
    async def work(call: Call) -> str:
        return RETURNS[name]

    async with world.replica() as replica:
        replica.tools.actions = {"work": work}
        replica.models.replies = [calls("work"), text("I see.")]
        events = await replica.send(world.request("Go on."))
        assert (end(events).run.status, end(events).run.fence) == (RunStatus.COMPLETED, 1)
        await replica.send(world.request("And now?"))
        sendable(replica.models.requests[-1].history)


async def test_a_tool_that_breaks_the_loops_own_rules(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(tool: ToolInfo, call: Call, site: CallSite) -> Return:
        raise ZeroDivisionError

    async with world.replica() as replica:
        replica.tools.actions = {"work": lambda call: asyncio.sleep(0, "never")}
        monkeypatch.setattr(replica.tools, "execute", broken)
        replica.models.replies = [calls("work"), text("I see.")]
        assert end(await replica.send(world.request("Go on."))).run.status is RunStatus.COMPLETED


DELTAS = {
    "of a piece that never comes": [PartDelta(7, "content", "la")],
    "that jump back": [PartDelta(1, "content", "b"), PartDelta(0, "content", "a"), PartDelta(1, "content", "c")],
    "that are empty": [PartDelta(0, "content", ""), PartDelta(0, "reasoning", "")],
    "with NUL": [PartDelta(0, "content", "a\0b")],
    "of a call without a name": [PartDelta(0, "call", "{", "", "")],
    "of 200 pieces": [PartDelta(number, "call", "{", f"call_{number}", "work") for number in range(200)],
}


@pytest.mark.parametrize("name", DELTAS)
async def test_deltas(world: World, name: str) -> None:
    async def reply(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        for delta in DELTAS[name]:
            yield delta
        yield text("Said.")

    async with world.replica() as replica:
        replica.models.replies = [reply]
        events = await replica.send(world.request(), stream=True)
        assert end(events).run.status is RunStatus.COMPLETED
        # The name of a call is told before its arguments.
        names = {delta.index for delta in DELTAS[name] if delta.call_name and delta.text}
        assert len([event for event in events if isinstance(event, Delta)]) == len(DELTAS[name]) + len(names)
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


SAID = {"words of 1 MB": "word " * (MEGABYTE // 5), "one word of 4 MB": "x" * 4 * MEGABYTE, "spaces": " " * 100}


@pytest.mark.parametrize("name", SAID)
async def test_what_users_say(world: World, name: str) -> None:
    """It is stored whole, shown as far as the window goes, and found by its beginning."""
    async with world.replica() as replica:
        replica.models.replies = [text("I see."), text("Here I am.")]
        said = f"Schopenhauer {SAID[name]}"
        assert end(await replica.send(world.request(said))).run.status is RunStatus.COMPLETED
        assert end(await replica.send(world.request("And now?"))).run.status is RunStatus.COMPLETED
        sendable(replica.models.requests[-1].history)
        assert all(sum(map(estimate, request.history)) < 32_000 for request in replica.models.requests)
        settings = Settings(1, "loci/demo", "loci/hash", "", 32_000)
        site = CallSite(ORGANIZATION, world.agent_id, world.agent_id, uuid7(), uuid7(), settings)
        asked = Call("k", "c", "conversation_search", '{"query": "Schopenhauer"}')
        assert "Schopenhauer" in (await recall_on(world.pool).search(asked, site)).text
    assert (await world.history())[0] == ("user", said)
