"""Tool rules and parallel calls from Postgres to the request that the provider gets, and back."""

import asyncio
from typing import Any

import orjson
import pytest

from services.agent.core.events import Event
from services.agent.core.facts import StopReason
from services.agent.core.messages import Call, Reasoning, Return, Text
from services.agent.core.ports import ModelRequest
from services.agent.postgres.rows import message_from_row
from tests.integration.agent.world import Replica, World, calls, end, says, text


def rule(kind: str, tool: str, **fields: Any) -> dict[str, Any]:
    """A rule as REST has it."""
    return {"type": kind, "tool_name": tool, **fields}


async def played(world: World, replica: Replica, *replies: Any, said: str = "Go.", **options: Any) -> list[Event]:
    """The events of a turn with these replies; the tools are a, b and c and return their names and arguments."""

    async def act(call: Call) -> str:
        return f"{call.name} {call.arguments}"

    replica.tools.actions = dict.fromkeys("abc", act)
    replica.models.replies = list(replies)
    replica.models.requests.clear()
    return await replica.send(world.request(said, **options))


def demanded(replica: Replica) -> list[tuple[bool, str | None]]:
    """Whether each request forced a call, and which."""
    return [(request.forced, request.only) for request in replica.models.requests]


async def returns(world: World) -> list[Return]:
    """What the tools of the agent returned, in order."""
    query = "SELECT * FROM agent.messages WHERE agent_id = $1 AND role = 'tool' ORDER BY seq"
    rows = await world.pool.fetch(query, world.agent_id)
    return [part for row in rows for part in message_from_row(row).parts if isinstance(part, Return)]


def given(returned: Return) -> Any:
    """The arguments that a tool of `played` was called with."""
    return orjson.loads(returned.text.partition(" ")[2])


def told(request: ModelRequest) -> str:
    """The newest message of a request, in words."""
    return " ".join(part.text for part in request.history[-1].parts if isinstance(part, Text | Return))


@pytest.mark.parametrize(
    ("rules", "names", "wanted", "shown"),
    [
        ([rule("run_first", "b")], "b", [(True, "b"), (False, None)], "b abc"),
        ([rule("run_first", "a"), rule("run_first", "b")], "b", [(True, None), (False, None)], "ab abc"),
        (
            [rule("constrain_child_tools", "a", children=["c"])],
            "ac",
            [(False, None), (True, "c"), (False, None)],
            "abc c abc",
        ),
        (
            [rule("parent_last_tool", "a", children=["b"])],
            "ab",
            [(False, None), (True, "b"), (False, None)],
            "ac b ac",
        ),
        (
            [rule("conditional", "a", child_output_mapping={"a {}": "b"}, default_child="c")],
            "ab",
            [(False, None), (True, "b"), (False, None)],
            "abc b abc",
        ),
        (
            [rule("conditional", "a", child_output_mapping={"else": "b"}, default_child="c")],
            "ac",
            [(False, None), (True, "c"), (False, None)],
            "abc c abc",
        ),
        ([rule("max_count_per_step", "a", max_count_limit=2)], "aa", [(False, None)] * 3, "abc abc bc"),
    ],
)
async def test_what_rules_allow_is_demanded_of_the_provider(
    world: World, rules: list[dict[str, Any]], names: str, wanted: list[tuple[bool, str | None]], shown: str
) -> None:
    await world.add_agent(tool_rules=rules)
    async with world.replica() as replica:
        events = await played(world, replica, *map(calls, names), text("Done."))
        assert demanded(replica) == wanted
        assert {request.parallel for request in replica.models.requests} == {False}
        # No others than those that may be called now.
        assert ["".join(tool.name for tool in request.tools) for request in replica.models.requests] == shown.split()
    assert end(events).run.stop_reason is StopReason.END_TURN
    assert [part.text for part in await returns(world)] == [f"{name} {{}}" for name in names]


@pytest.mark.parametrize(
    ("rules", "names", "allowed"),
    [
        ([rule("run_first", "b")], "a", "b"),
        ([rule("constrain_child_tools", "a", children=["c"])], "ab", "c"),
        ([rule("parent_last_tool", "a", children=["b"])], "b", "a"),
        ([rule("max_count_per_step", "a", max_count_limit=1)], "aa", "b"),
    ],
)
async def test_a_call_against_the_rules_does_not_run_and_the_model_is_told(
    world: World, rules: list[dict[str, Any]], names: str, allowed: str
) -> None:
    await world.add_agent(tool_rules=rules)
    async with world.replica() as replica:
        events = await played(world, replica, *map(calls, names), text("I see."))
        sentence = told(replica.models.requests[-1])
    *fine, refused = await returns(world)
    assert not any(part.is_error for part in fine)
    assert (refused.refused, refused.is_error, refused.text) == (True, True, sentence)
    assert allowed in sentence
    assert end(events).run.stop_reason is not None


async def test_a_terminal_tool_ends_the_turn(world: World) -> None:
    await world.add_agent(tool_rules=[rule("exit_loop", "a")])
    async with world.replica() as replica:
        events = await played(world, replica, calls("b"), calls("a"), text("never asked for"))
        assert len(replica.models.requests) == 2
    assert end(events).run.stop_reason is StopReason.TOOL_RULE


async def test_what_is_required_comes_before_the_end(world: World) -> None:
    await world.add_agent(tool_rules=[rule("required_before_exit", "b"), rule("exit_loop", "a")])
    async with world.replica() as replica:
        events = await played(world, replica, text("Done?"), calls("a"), calls("b"), text("Done."))
        assert "b" in told(replica.models.requests[1])
        assert "b" in told(replica.models.requests[2])
    assert end(events).run.stop_reason is StopReason.END_TURN
    assert [part.name for part in await returns(world)] == ["a", "b"]


async def test_arguments_of_a_rule_win_and_those_that_do_not_fit_end_the_turn(world: World) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    await world.add_agent(tool_rules=[rule("run_first", "a", args={"n": 5})])
    async with world.replica() as replica:
        replica.tools.parameters = {"a": schema}
        await played(world, replica, calls("a", arguments='{"n": 1}'), text("Done."))
        assert [given(part) for part in await returns(world)] == [{"n": 5}]
        await world.add_agent(tool_rules=[rule("run_first", "a", args={"n": "five"})])
        events = await played(world, replica, calls("a", arguments='{"n": 1}'), text("never asked for"))
    assert end(events).run.stop_reason is StopReason.INVALID_TOOL_CALL
    assert [part.refused for part in await returns(world)] == [True]


async def test_calls_that_nobody_can_run_are_answered(world: World) -> None:
    async with world.replica() as replica:
        unknown = Call("", "call_0", "d", "{}")
        broken = Call("", "call_1", "a", "{not json")
        await played(world, replica, says(unknown, broken, finish="tool_calls"), text("I see."))
    first, second = await returns(world)
    assert "Tool not found: d" in first.text
    assert (first.refused, second.refused, "JSON" in second.text) == (True, True, True)


# Parallel calls ----------------------------------------------------------------------------------------------


async def test_tools_that_allow_it_run_at_the_same_time_and_return_in_the_order_of_the_calls(world: World) -> None:
    here = {name: asyncio.Event() for name in "ab"}

    async def meet(call: Call) -> str:
        here[call.name].set()
        # Neither returns before the other has begun.
        await here["b" if call.name == "a" else "a"].wait()
        await asyncio.sleep(0.1 if call.name == "a" else 0.0)
        return call.name

    async with world.replica() as replica:
        replica.tools.actions, replica.tools.parallel = dict.fromkeys("ab", meet), frozenset("ab")
        replica.models.replies = [calls("a", "b"), text("They met.")]
        await replica.send(world.request())
        assert replica.models.requests[0].parallel
    assert [(part.call_id, part.text) for part in await returns(world)] == [("call_0", "a"), ("call_1", "b")]


async def test_tools_that_do_not_allow_it_run_one_after_the_other(world: World) -> None:
    running: list[str] = []

    async def alone(call: Call) -> str:
        running.append(call.name)
        assert running == [call.name]
        await asyncio.sleep(0.05)
        running.remove(call.name)
        return call.name

    async with world.replica() as replica:
        replica.tools.actions = dict.fromkeys("abc", alone)
        replica.models.replies = [calls("c", "a", "b"), text("Done.")]
        await replica.send(world.request())
    assert [part.text for part in await returns(world)] == ["c", "a", "b"]


async def test_calls_after_the_first_are_left_out_where_rules_want_one_at_a_time(world: World) -> None:
    await world.add_agent(tool_rules=[rule("continue_loop", "a")])
    async with world.replica() as replica:
        await played(world, replica, calls("a", "b", "c"), text("Done."))
        stored = replica.models.requests[-1].history[1]
    assert [part.name for part in stored.parts if isinstance(part, Call)] == ["a"]
    assert [part.name for part in await returns(world)] == ["a"]


# Older types -------------------------------------------------------------------------------------------------


async def test_an_older_type_must_call_thinks_in_arguments_and_goes_on_by_heartbeats(world: World) -> None:
    await world.add_agent(agent_type="memgpt_agent", tool_rules=[rule("exit_loop", "c")])
    arguments = '{"thinking": "Hm.", "x": 1, "request_heartbeat": %s}'
    async with world.replica() as replica:
        first, last = calls("a", arguments=arguments % "true"), calls("b", arguments=arguments % "false")
        events = await played(world, replica, first, last, text("never asked for"))
        assert demanded(replica) == [(True, None)] * 2
        schema = replica.models.requests[0].tools[0].parameters
        assert (list(schema["properties"]), schema["required"]) == (
            ["thinking", "request_heartbeat"],
            ["thinking", "request_heartbeat"],
        )
        assert "request_heartbeat" not in replica.models.requests[0].tools[2].parameters["properties"]
        assert orjson.loads(told(replica.models.requests[1]))["type"] == "heartbeat"
        reply = replica.models.requests[1].history[1]
    assert end(events).run.stop_reason is StopReason.END_TURN
    assert [given(part) for part in await returns(world)] == [{"x": 1}, {"x": 1}]
    # The model is shown its thought where it wrote it.
    assert [type(part) for part in reply.parts] == [Call]
    query = "SELECT * FROM agent.messages WHERE agent_id = $1 AND role = 'assistant' ORDER BY seq LIMIT 1"
    parts = message_from_row(await world.pool.fetchrow(query, world.agent_id)).parts
    assert [part.text for part in parts if isinstance(part, Reasoning)] == ["Hm."]


async def test_an_older_type_that_calls_nothing_ends_with_that_reason(world: World) -> None:
    await world.add_agent(agent_type="react_agent")
    async with world.replica() as replica:
        events = await played(world, replica, text("I only talk."))
    assert end(events).run.stop_reason is StopReason.NO_TOOL_CALL
