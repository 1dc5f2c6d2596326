"""When those who tend an agent's memory have their turn, and what they are told."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from services.agent.core.facts import Options, RunEnded, Settings, StopReason
from services.agent.core.messages import Message, Text
from services.agent.core.tending import MOST_CHARS, counts, is_due, tending_message
from services.agent.core.turn import Turn

SETTINGS = Settings(1, "loci/demo", "loci/hash", "", 32_000, enable_sleeptime=True)


def turn(stop_reason: StopReason | None = StopReason.END_TURN, settings: Settings = SETTINGS) -> Turn:
    return Turn(UUID(int=1), settings, ended=None if stop_reason is None else RunEnded(stop_reason))


@pytest.mark.parametrize(
    ("stop_reason", "whether"),
    [
        (StopReason.END_TURN, True),
        (StopReason.TOOL_RULE, True),
        (StopReason.MAX_STEPS, True),
        (StopReason.REQUIRES_APPROVAL, False),
        (StopReason.CANCELLED, False),
        (StopReason.LLM_API_ERROR, False),
        (None, False),
    ],
)
def test_turns_that_count(stop_reason: StopReason | None, whether: bool) -> None:
    assert counts(turn(stop_reason)) is whether


@pytest.mark.parametrize(
    "settings",
    [
        replace(SETTINGS, enable_sleeptime=False),
        replace(SETTINGS, options=Options(tends=True)),
        replace(SETTINGS, options=Options(compact={})),
    ],
)
def test_turns_that_nobody_thinks_over(settings: Settings) -> None:
    assert not counts(turn(settings=settings))


def test_every_so_many_turns() -> None:
    assert [turns for turns in range(1, 11) if is_due(turns, 5)] == [5, 10]
    assert all(is_due(turns, None) for turns in range(1, 4))


def test_what_they_are_told_is_bounded() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    messages = [Message(UUID(int=n), "user", (Text(f"{n} " + "x" * 50_000),), at) for n in range(200)]
    told = tending_message("Ada", messages, window=32_000)
    assert "the agent Ada" in told
    assert len(told) < 60_000
    one = tending_message("Ada", messages[:1], window=1_000_000)
    assert len(one) < MOST_CHARS + 2_000
