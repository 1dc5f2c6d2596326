"""Tool calls: whatever goes wrong is said to the model, never raised."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest

from services.agent.calls.dispatch import run_call, run_calls
from services.agent.core.facts import Settings
from services.agent.core.messages import Call, Return
from services.agent.core.ports import CallSite, ToolInfo, ToolResult
from services.agent.core.window.sizes import MOST_RETURN_CHARS
from services.common.errors import DeadlineExceeded, NotFound, Unavailable

ID = UUID(int=1)
SITE = CallSite(ID, ID, ID, ID, ID, Settings(1, "loci/demo", "loci/hash", "", 32_000))
TOOLS = {"roll": ToolInfo(ID, "roll", "custom", "", {}, return_char_limit=4)}


@dataclass
class Runners:
    """A tool runner that does or says this; nothing else runs."""

    tools: Any
    memory: Any = None
    recall: Any = None
    states: Any = None
    agents: Any = None


async def returned(outcome: Any, *, name: str = "roll") -> Return:
    if isinstance(outcome, Return):
        outcome = ToolResult(outcome)
    runners = Runners(AsyncMock(**{"execute.side_effect": [outcome]}))
    return await run_call(Call("k", "c", name, "{}"), SITE, TOOLS, runners)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (NotFound("no such tool"), "roll could not be run: no such tool"),
        (Unavailable("It is gone."), "roll did not answer: It is gone. It may or may not have taken effect."),
        (DeadlineExceeded("slow"), "roll did not answer: slow. It may or may not have taken effect."),
        (TypeError("unhashable"), "roll failed. It may or may not have taken effect."),
        (RuntimeError("secret"), "roll failed. It may or may not have taken effect."),
    ],
)
async def test_errors_are_returns(outcome: Exception, said: str) -> None:
    assert await returned(outcome) == Return("c", "roll", said, is_error=True)


async def test_a_tool_that_went_away_after_the_call_was_planned() -> None:
    assert await returned(None, name="fly") == Return("c", "fly", "Tool not found: fly.", is_error=True)


async def test_long_returns_are_cut_with_a_marker() -> None:
    text = (await returned(Return("c", "roll", "123456"))).text
    assert text == "1234... [function output was truncated: it has 6 characters, 4 are shown]"


async def test_what_a_tool_may_return_is_stored_whole_whatever_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, "roll", replace(TOOLS["roll"], return_char_limit=2 * MOST_RETURN_CHARS))
    assert (await returned(Return("c", "roll", "x" * MOST_RETURN_CHARS))).text == "x" * MOST_RETURN_CHARS
    cut = (await returned(Return("c", "roll", "x" * (MOST_RETURN_CHARS + 1)))).text
    assert MOST_RETURN_CHARS - 10 < len(cut) <= MOST_RETURN_CHARS


async def test_what_the_tool_runner_has_cut_is_not_cut_again() -> None:
    executed = ToolResult(Return("c", "roll", "1234... (cut)"), is_cut=True)
    assert (await returned(executed)).text == "1234... (cut)"


async def test_edits_of_the_state_go_to_memory_each_under_a_key_of_its_own_and_the_return_says_so() -> None:
    tool = replace(TOOLS["roll"], takes_agent_state=True, return_char_limit=100)
    edits = (("human", "Ada"), ("persona", "Kind."))
    tools = AsyncMock(**{"execute.side_effect": [ToolResult(Return("c", "roll", "done"), edits)]})
    told = [Return("c", "memory_rethink", "Changed human."), Return("c", "memory_rethink", "Read-only.", is_error=True)]
    memory = AsyncMock(**{"apply.side_effect": told})
    runners = Runners(tools, memory, states=AsyncMock(**{"of.return_value": '{"id":"agent-1"}'}))
    assert (await run_call(Call("k", "c", "roll", "{}"), SITE, {"roll": tool}, runners)) == Return(
        "c", "roll", "done\nChanged human.\nRead-only."
    )
    assert tools.execute.await_args.kwargs == {"agent_state": '{"id":"agent-1"}'}
    applied = [one.args[0] for one in memory.apply.await_args_list]
    assert [(call.key, call.name, json.loads(call.arguments)) for call in applied] == [
        ("k:0", "memory_rethink", {"label": "human", "new_memory": "Ada"}),
        ("k:1", "memory_rethink", {"label": "persona", "new_memory": "Kind."}),
    ]


# Several calls -----------------------------------------------------------------------------------------------


@dataclass
class Slow:
    """A tool runner whose calls take a moment; `log` tells when each began and ended."""

    log: list[str] = field(default_factory=list)
    pause: float = 0.01

    async def execute(self, tool: ToolInfo, call: Call, site: CallSite) -> ToolResult:
        self.log.append(f"+{call.id}")
        await asyncio.sleep(self.pause)
        self.log.append(f"-{call.id}")
        return ToolResult(Return(call.id, call.name, "done"))


SHARED, ALONE = ToolInfo(ID, "shared", "custom", "", {}, parallel=True), ToolInfo(ID, "alone", "custom", "", {})
DENIED = Return("0", "alone", "denied", is_error=True, refused=True)


def several(*names: str) -> list[Call | Return]:
    return [Call(f"k{place}", str(place), name, "{}") if name else DENIED for place, name in enumerate(names)]


@pytest.mark.parametrize(
    ("names", "log"),
    [
        (("shared", "shared"), "+0 +1 -0 -1"),
        (("alone", "alone"), "+0 -0 +1 -1"),
        (("shared", "alone", "shared", "shared"), "+0 -0 +1 -1 +2 +3 -2 -3"),
        (("", "shared", "shared"), "+1 +2 -1 -2"),
        (("", "alone"), "+1 -1"),
        (("fly", "alone"), "+1 -1"),
    ],
)
async def test_calls_run_together_where_their_tools_may(names: tuple[str, ...], log: str) -> None:
    slow = Slow()
    returns = await run_calls(several(*names), SITE, (SHARED, ALONE), Runners(slow))
    assert " ".join(slow.log) == log
    assert [one.call_id for one in returns] == [str(place) for place in range(len(names))]


async def test_calls_that_did_not_begin_are_not_left_behind() -> None:
    slow = Slow(pause=60)
    running = asyncio.create_task(run_calls(several("alone", "alone"), SITE, (ALONE,), Runners(slow)))
    while not slow.log:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert slow.log == ["+0"]


async def test_what_has_returned_is_there_when_the_rest_is_cancelled() -> None:
    slow, found = Slow(), dict[int, Return]()
    tools = (SHARED, ALONE)
    running = asyncio.create_task(run_calls(several("", "shared", "alone"), SITE, tools, Runners(slow), found))
    while len(found) < 2:
        await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [found[place].text for place in range(len(found))] == ["denied", "done"]
