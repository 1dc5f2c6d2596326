"""Claude over HTTP, at Anthropic and on Bedrock: turns whose prompt changes, and turns that another model began."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import Completed, Generation, Reasoning, ToolCall
from services.llm_gateway.core.models import ModelKind
from tests.contract.llm_gateway.conftest import World, _world, framed_by
from tests.fakes import bedrock_wire, script
from tests.fakes.script import Reply
from tests.unit.llm_gateway.builders import assistant, model, results, system, tool, user

NEWEST = {"anthropic": "anthropic/claude-opus-5-5", "bedrock": "bedrock/us.anthropic.claude-opus-5-5"}
DICE = tool("roll_dice", num_sides="integer")


@pytest.fixture(params=NEWEST)
async def claude(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Each way to the newest model in turn."""
    async for world in _world(request.param):
        if request.param == "anthropic":
            world.fake.limits = (1_000_000, 128_000)
        yield replace(world, model=model(NEWEST[request.param]))


async def reply_to(world: World, *messages: object, stream: bool, **options: object) -> Generation:
    *_, completed = await world.events(world.ask(*messages, **options), stream=stream)  # type: ignore[arg-type]
    assert isinstance(completed, Completed)
    return completed.generation


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_goes_on_though_the_agent_has_changed_its_memory(claude: World, stream: bool) -> None:
    claude.script(Reply(reasoning="A die.", calls=[script.ToolCall("roll_dice", {"num_sides": 6})]), Reply(text="4."))
    first = await reply_to(claude, system("Memory: none."), user("Roll."), stream=stream, tools=[DICE])
    thought, call = first.message.parts
    assert isinstance(thought, Reasoning)
    assert isinstance(call, ToolCall)
    history = (system("Memory: one."), user("Roll."), first.message, results((call.id, "4")))
    assert (await reply_to(claude, *history, stream=stream, tools=[DICE])).finish_reason.name == "STOP"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_goes_on_that_another_vendors_model_began(claude: World, stream: bool) -> None:
    claude.script(*[Reply(text="4.")] * 2)
    begun = assistant(Reasoning("Hm.", "openai:sig"), ToolCall("call_1|x", "roll_dice", "{}"))
    history = (user("Roll."), begun, results(("call_1|x", "4")))
    budget = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert (await reply_to(claude, *history, stream=stream, tools=[DICE], settings=budget)).finish_reason.name == "STOP"
    claude.model = claude.spec.model()
    assert (await reply_to(claude, *history, stream=stream, tools=[DICE], settings=budget)).finish_reason.name == "STOP"


async def test_models_are_listed_with_what_they_can(claude: World) -> None:
    listed = {one.name: one for one in await claude.provider.list_models(5.0)}
    opus = listed[claude.model.name]
    assert opus.kind is ModelKind.CHAT
    assert opus.capabilities["vision"] is True
    if claude.spec.name == "anthropic":
        assert (opus.context_window, opus.max_output_tokens) == (1_000_000, 128_000)
        assert opus.capabilities == {"vision": True, "reasoning": True, "structured_output": True}
        return
    # What can be called, in the pages of both kinds of profiles: not what a profile alone leads to.
    assert "anthropic.claude-opus-5-5" not in listed
    assert listed["a1b2c3d4e5f6"].base_model == "claude-sonnet-5"
    assert {name.partition(".")[0] for name in listed if name.endswith("claude-opus-5-5")} == {"us", "global"}
    assert listed["amazon.titan-embed-text-v2:0"].kind is ModelKind.EMBEDDING


@pytest.mark.parametrize("vendor_world", framed_by("eventstream"), indirect=True)
async def test_a_damaged_event_stream(vendor_world: World) -> None:
    event = bytearray(bedrock_wire.event("messageStop", {"stopReason": "end_turn"}))
    event[-1] ^= 1
    # The fake's scripts are text.
    raw = event.decode("latin-1")
    kind = bedrock_wire.STREAM_HEADERS["content-type"]
    vendor_world.script(Reply(raw_body=raw, content_type=kind), Reply(raw_body="x" * 40, content_type=kind))
    for _ in range(2):
        with pytest.raises(errors.LlmStreamMalformed, match="breaks its protocol"):
            await vendor_world.events(vendor_world.ask("hello"))


@pytest.mark.parametrize("vendor_world", framed_by("eventstream"), indirect=True)
async def test_a_throttled_stream(vendor_world: World) -> None:
    raw = bedrock_wire.exception("throttlingException", "Too many requests.").decode("latin-1")
    kind = bedrock_wire.STREAM_HEADERS["content-type"]
    vendor_world.script(Reply(raw_body=raw, content_type=kind))
    with pytest.raises(errors.LlmRateLimit):
        await vendor_world.events(vendor_world.ask("hello"))


@pytest.mark.parametrize("vendor_world", framed_by("eventstream"), indirect=True)
async def test_a_model_that_does_not_stream_is_asked_for_the_whole(vendor_world: World) -> None:
    whole = replace(vendor_world.model.capabilities, streaming=False)
    vendor_world.model = replace(vendor_world.model, capabilities=whole)
    vendor_world.script(Reply(text="one two"))
    deltas, reply = await vendor_world.streamed(vendor_world.ask("hello"))
    assert vendor_world.sent.path.endswith("/converse")
    assert [delta.text for delta in deltas if hasattr(delta, "text")] == ["one two"]
    assert reply.provider_response_id.startswith("req-")


@pytest.mark.parametrize("vendor_world", ["bedrock"], indirect=True)
async def test_an_arn_is_signed_as_it_is_sent(vendor_world: World) -> None:
    name = vendor_world.model.name
    arn = f"arn:aws:bedrock:us-east-1:123456789012:inference-profile/{name}"
    vendor_world.model = replace(vendor_world.model, name=arn, base_model="claude-haiku-4-5")
    vendor_world.script(Reply(text="Hi."))
    assert (await vendor_world.whole(vendor_world.ask("hello"))).provider_model == arn
    assert vendor_world.sent.path.endswith(f"inference-profile%2F{name}/converse")
