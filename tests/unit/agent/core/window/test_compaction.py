"""When a window is compacted, and where it is cut."""

import pytest

from services.agent.core.messages import Decision, Message, Text
from services.agent.core.window.compaction import (
    Buffer,
    CompactionSettings,
    Mode,
    cuts,
    fallback_modes,
    is_due,
    plan,
    plans,
)
from tests.unit.agent.histories import answer, call, message, summary

SETTINGS = CompactionSettings()
ASK, REPLY = message(0, "user", Text("hi")), message(0, "assistant", Text("ho"))
TALK = [ASK, REPLY] * 5
CALLS, RETURNS = message(0, "assistant", call("a")), message(0, "tool", answer("a"))
GATED, ANSWERED = message(0, "assistant", call("a", gated=True)), message(0, "approval", Decision("a", approve=True))
EARLIER, SYSTEM = summary(0, "before"), message(0, "system", Text("rule"))


def kept_from(history: list[Message], mode: Mode, *, window: int = 1_000, fixed: int = 0, each: int = 10) -> int | None:
    cut = plan(history, mode, SETTINGS, window=window, fixed=fixed, measure=lambda _: each)
    return None if cut is None else cut.kept_from


@pytest.mark.parametrize(("tokens", "expected"), [(0, False), (900, False), (901, True), (2_000, True)])
def test_a_window_is_due_above_nine_tenths(tokens: int, expected: bool) -> None:
    assert is_due(tokens, 1_000) is expected


@pytest.mark.parametrize(
    ("history", "places"),
    [
        ([], []),
        ([ASK], []),
        ([ASK, REPLY], [1]),
        # A pair is not parted, whatever stands in it.
        ([ASK, CALLS, RETURNS], [1]),
        ([ASK, CALLS, ASK, RETURNS, ASK], [1, 4]),
        ([ASK, CALLS, RETURNS, CALLS, RETURNS], [1, 3]),
        # Nor one whose call waited for the client.
        ([ASK, GATED, ANSWERED, RETURNS, REPLY], [1, 4]),
        # Calls that wait stay, and what is said meanwhile.
        ([ASK, REPLY, GATED, ASK, ASK], [1, 2]),
        # Nobody waits for a call that is not the latest.
        ([ASK, GATED, REPLY, CALLS, RETURNS], [1, 2, 3]),
        # An earlier summary is summarised with at least one message more.
        ([EARLIER, ASK, REPLY], [2]),
        ([EARLIER, ASK], []),
        ([ASK, SYSTEM, REPLY], [2]),
    ],
)
def test_where_the_kept_part_may_begin(history: list[Message], places: list[int]) -> None:
    assert cuts(history) == places


@pytest.mark.parametrize(
    ("fixed", "place"),
    [
        # Of ten messages of 100 tokens in a window of 1,000, 70 % may be left: three go first, then one more a step,
        # and what is left begins with the assistant.
        (0, 3),
        (1, 5),
        (200, 5),
        (201, 7),
        (599, 9),
        # The newest message alone is too much.
        (601, None),
    ],
)
def test_the_window_slides_until_it_is_free_enough(fixed: int, place: int | None) -> None:
    assert kept_from(TALK, Mode.SLIDING_WINDOW, fixed=fixed, each=100) == place
    assert kept_from(TALK, Mode.SELF_COMPACT_SLIDING_WINDOW, fixed=fixed, each=100) == place


def test_the_percentage_is_the_agents() -> None:
    half = CompactionSettings(sliding_window_percentage=0.5)
    cut = plan(TALK, Mode.SLIDING_WINDOW, half, window=1_000, fixed=0, measure=lambda _: 100)
    assert cut is not None
    assert (cut.kept_from, cut.saved) == (7, 700)


@pytest.mark.parametrize(
    ("history", "place"),
    [
        (TALK, 10),
        ([ASK], 1),
        ([*TALK, CALLS, RETURNS], 12),
        # Calls that wait stay, and what is said meanwhile.
        ([*TALK, GATED, ASK], 10),
        ([EARLIER, ASK], 2),
        ([EARLIER], None),
        ([], None),
        ([EARLIER, GATED], None),
    ],
)
def test_all_takes_everything_but_calls_that_wait(history: list[Message], place: int | None) -> None:
    assert kept_from(history, Mode.ALL) == kept_from(history, Mode.SELF_COMPACT_ALL) == place


def test_older_types_evict_a_part() -> None:
    assert kept_from(TALK, Mode.PARTIAL_EVICT) == 3
    assert kept_from(TALK, Mode.PARTIAL_EVICT, each=200) is None


@pytest.mark.parametrize(("count", "place"), [(6, None), (7, 5), (11, 9)])
def test_a_static_buffer_keeps_the_newest(count: int, place: int | None) -> None:
    history = ([ASK, REPLY] * 6)[:count]
    buffer = Buffer(most=6, least=2)
    cut = plan(history, Mode.STATIC_BUFFER, SETTINGS, window=1_000, fixed=0, measure=lambda _: 10, buffer=buffer)
    assert (None if cut is None else cut.kept_from) == place


def test_a_static_buffer_that_fills_the_window_is_cut_early() -> None:
    buffer = Buffer(most=60, least=2)
    cut = plan(TALK, Mode.STATIC_BUFFER, SETTINGS, window=1_000, fixed=0, measure=lambda _: 100, buffer=buffer)
    assert cut is not None
    assert cut.kept_from == 8


@pytest.mark.parametrize("mode", Mode)
def test_every_chain_ends_in_all(mode: Mode) -> None:
    assert fallback_modes(mode)[0] is mode
    assert fallback_modes(mode)[-1] is Mode.ALL


def test_what_cannot_slide_goes_whole() -> None:
    found = plans(TALK, Mode.SELF_COMPACT_ALL, SETTINGS, window=1_000, fixed=601, measure=lambda _: 100)
    assert [(cut.mode, cut.kept_from) for cut in found] == [(Mode.SELF_COMPACT_ALL, 10), (Mode.ALL, 10)]
    assert list(plans([], Mode.ALL, SETTINGS, window=10, fixed=0)) == []


def test_the_newest_message_stays_where_the_settings_do_not_say_all() -> None:
    found = plans(TALK, Mode.SLIDING_WINDOW, SETTINGS, window=1_000, fixed=601, measure=lambda _: 100)
    assert [(cut.mode, cut.kept_from) for cut in found] == [(Mode.ALL, 9)]


def test_a_cut_that_frees_next_to_nothing_is_not_worth_it() -> None:
    (cut,) = plans([ASK], Mode.ALL, SETTINGS, window=1_000, fixed=0, measure=lambda _: 50)
    assert cut.worth_it(1_000)
    assert not cut.worth_it(1_001)
