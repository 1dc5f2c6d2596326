"""Tool calls: whatever goes wrong is said to the model, never raised."""

from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock
from uuid import UUID

import pytest

from services.agent.dispatch import run_call
from services.agent.facts import Settings
from services.agent.messages import Call, Return
from services.agent.ports import CallSite, ToolInfo
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


async def returned(outcome: Any, *, name: str = "roll") -> Return:
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
    assert text == "1234... [cut: 2 of 6 characters are not shown]"
