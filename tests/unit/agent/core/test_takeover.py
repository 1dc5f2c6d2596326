"""A run that is stopped, or lost and taken over, at each place of its turn: the fold of stored facts goes on alike."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest

from services.agent.core.facts import (
    CallModel,
    Compact,
    Compacted,
    ContextOverflowed,
    Fact,
    Finish,
    ModelReplied,
    Options,
    Remind,
    RunTools,
    Settings,
    StopReason,
    ToolsReturned,
    Usage,
)
from services.agent.core.messages import Call, Decision, Message, Return, Text
from services.agent.core.rules.tool_rules import (
    ExecutedCall,
    ExitLoop,
    MaxCount,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
)
from services.agent.core.turn import (
    CANCELLED,
    MOST_MESSAGES,
    OVERDUE,
    Turn,
    begin_turn,
    decide,
    evolve,
    next_fact,
    step_id,
)
from services.agent.core.window.compaction import CompactionStats, Trigger
from tests.unit.agent.playing import NOW, Played, Player, Reply, Script, call, message, play, run_id, settings

GO = {"request_heartbeat": True}

# Turns that pass every place: model, tools, reminder, compaction, waiting, several steps.
TURNS: list[tuple[str, Settings, list[Script]]] = [
    ("text", settings(), ["so"]),
    ("nothing", settings(), [""]),
    ("two rounds", settings(), ["<ab>", "<c>", "so"]),
    ("max steps", settings(max_steps=1), ["<a>"]),
    ("reminded", settings(RequiredBeforeExit("a")), ["so", "<a>", "so"]),
    ("rules", settings(RunFirst("a"), MaxCount("a", 1), ExitLoop("b")), ["<c>", "<a>", "<a>", "<b>"]),
    ("older", settings(agent_type="memgpt_agent"), [call("a", **GO), call("b")]),
    (
        "cleared",
        replace(settings(agent_type="workflow_agent"), message_buffer_autoclear=True),
        [call("a", **GO), call("b")],
    ),
    ("compacted", settings(MaxCount("a", 1)), [Reply((call("a"),), tokens=31_000), "<a>", "so"]),
    ("compacted twice", settings(), [Reply((call("a"),), tokens=31_000), Reply((call("b"),), tokens=31_000), "so"]),
    ("compacted at its end", settings(), [Reply((Text("so"),), tokens=31_000)]),
    ("waiting", settings(RequiresApproval("a")), ["<ab>"]),
]


def played(agent: Settings, script: list[Script]) -> tuple[Player, Played]:
    """A conversation with an earlier turn, and a turn."""
    player = Player(agent)
    if agent.agent_type == "letta_v1_agent" and not agent.tool_rules:
        player.run(["<c>", "earlier"])
    return player, player.run(script)


def first(one: Played) -> tuple[Message, ...]:
    """Returns the settings that the run began with."""
    ids = {fact_message.id for fact in one.facts if (fact_message := getattr(fact, "message", None)) is not None}
    return tuple(each for each in one.start.history if each.run_id == one.turn.run_id and each.id not in ids)


def resumed(one: Played, before: Sequence[Message], facts: Sequence[Fact]) -> Turn:
    """The turn as another owner knows it."""
    return reduce(evolve, facts, begin_turn(one.turn.run_id, one.turn.settings, before, first(one)))


@pytest.mark.parametrize(("agent", "script"), [row[1:] for row in TURNS], ids=[row[0] for row in TURNS])
def test_the_fold_of_the_facts_is_the_turn_at_every_place(agent: Settings, script: list[Script]) -> None:
    _, one = played(agent, script)
    before = one.start.history[: -len(first(one))]
    for place in range(len(one.facts) + 1):
        assert resumed(one, before, one.facts[:place]) == reduce(evolve, one.facts[:place], one.start)


@pytest.mark.parametrize("why", [CANCELLED, OVERDUE])
@pytest.mark.parametrize(("agent", "script"), [row[1:] for row in TURNS], ids=[row[0] for row in TURNS])
def test_a_turn_can_be_stopped_at_every_place(agent: Settings, script: list[Script], why: Any) -> None:
    _, one = played(agent, script)
    for place in range(len(one.facts)):
        turn = replace(reduce(evolve, one.facts[:place], one.start), interruption=why)
        end = decide(turn)
        assert end == Finish(why.stop_reason, None if why is CANCELLED else why)
        ended = next_fact(turn)
        assert ended is not None
        stopped = evolve(turn, ended)
        assert (stopped.pending, next_fact(stopped)) == ((), None)
        # The next message is not held up, but by calls that wait for the client.
        after = Player(replace(agent, tool_rules=(), options=Options()))
        after.history, after._runs, after._messages = stopped.history, 10, 1000
        assert after.run([call("d"), "so"]).end in (StopReason.END_TURN, StopReason.REQUIRES_APPROVAL)


def test_a_cancel_that_comes_with_the_last_reply_is_too_late() -> None:
    """The end follows from the reply alone, so both are stored at once; see loop.settle."""
    one = play(settings(), "so")
    assert next_fact(reduce(evolve, one.facts[:-1], one.start)) == one.facts[-1]


# Windows that are smaller than what the facts speak of ---------------------------------------------------------


def compacted(number: int, kept_from: Message | None) -> Compacted:
    stats = CompactionStats(Trigger.CONTEXT_WINDOW_EXCEEDED, 9, 5, 32_000, 9, 5)
    summary = message(number, "summary", Text(f"summary {number}"))
    return Compacted(
        stats.trigger, None if kept_from is None else summary, None if kept_from is None else kept_from.id, stats
    )


OLD = tuple(message(number, "user" if number % 2 else "assistant", Text("old"), run=9) for number in range(1, 7))
SAID = message(10, "user", Text("now"))
CALLING = message(11, "assistant", replace(call("a"), key="k"))
RETURNED = message(12, "tool", Return("a", "a", "4"))
REPLIED = ModelReplied(1, 1, CALLING, Usage(5, 5), "tool_calls", tuple("abcd"))
TOOLS = ToolsReturned(1, RETURNED)
OVERFLOWED = ContextOverflowed(1, 1)

WINDOWS: list[tuple[str, Sequence[Message], list[Fact], list[int]]] = [
    # what it is about, the window that the new owner reads, the facts, the messages that it goes on with
    ("kept from before the run", OLD, [OVERFLOWED, compacted(20, OLD[4])], [20, 5, 6, 10]),
    ("the window begins there already", OLD[4:], [OVERFLOWED, compacted(20, OLD[4])], [20, 5, 6, 10]),
    ("kept from the run's own message", (), [OVERFLOWED, compacted(20, SAID)], [20, 10]),
    ("kept from a reply of the run", (), [REPLIED, TOOLS, compacted(20, CALLING)], [20, 11, 12]),
    ("older than the window", OLD[2:], [OVERFLOWED, compacted(20, OLD[0])], [20, 3, 4, 5, 6, 10]),
    ("nothing to compact", OLD, [OVERFLOWED, compacted(20, None)], [1, 2, 3, 4, 5, 6, 10]),
    ("twice", OLD[5:], [OVERFLOWED, compacted(20, OLD[3]), compacted(21, OLD[5])], [21, 6, 10]),
    ("twice, the second in the run", (), [OVERFLOWED, compacted(20, OLD[3]), REPLIED, TOOLS, compacted(21, CALLING)],
     [21, 11, 12]),
]  # fmt: skip


@pytest.mark.parametrize(("window", "facts", "numbers"), [row[1:] for row in WINDOWS], ids=[row[0] for row in WINDOWS])
def test_what_a_new_owner_goes_on_with(window: Sequence[Message], facts: list[Fact], numbers: list[int]) -> None:
    turn = reduce(evolve, facts, begin_turn(run_id(1), settings(), window, (SAID,)))
    assert [one.id.int >> 64 for one in turn.history] == numbers


def test_answers_that_were_taken_and_compacted_away_are_not_taken_again() -> None:
    asked = message(25, "assistant", Call("k", "a", "a", "{}", "approval"), run=9)
    answer = message(26, "approval", Decision("a", approve=True))
    facts: list[Fact] = [ToolsReturned(0, RETURNED), ContextOverflowed(1, 1), compacted(20, answer)]
    agent = settings(RequiresApproval("a"), MaxCount("a", 1))
    alive = reduce(evolve, facts, begin_turn(run_id(1), agent, (*OLD, asked), (answer,)))
    # The message that asked is out of the window by now.
    turn = reduce(evolve, facts, begin_turn(run_id(1), agent, (), (answer,)))
    assert decide(turn) == decide(alive) == CallModel(1, 2)
    assert turn.called == alive.called == (ExecutedCall("a", "4"),)
    assert turn.history == alive.history


# Compaction within a turn -----------------------------------------------------------------------------------


def test_a_crowded_window_is_compacted_once_after_a_step() -> None:
    assert play(settings(), Reply((call("a"),), tokens=28_801), "so").shown == "M T C M end_turn"
    assert play(settings(), Reply((call("a"),), tokens=28_800), "so").shown == "M T M end_turn"
    # Also after the last step: the next turn begins with room.
    assert play(settings(), Reply((Text("so"),), tokens=31_000)).shown == "M C end_turn"
    assert play(settings(max_steps=1), Reply((call("a"),), tokens=31_000)).shown == "M T C max_steps"


def test_what_is_not_worth_a_compaction_is_not_tried_twice() -> None:
    played = play(settings(), Reply((call("a"),), tokens=31_000), "so", compacts=False)
    assert played.shown == "M T C M end_turn"
    assert len(played.turn.history) == 4


def test_calls_come_before_compaction() -> None:
    assert play(settings(), Reply((call("a"), call("b")), tokens=31_000), "so").shown == "M T C M end_turn"


def test_a_window_of_very_many_messages_is_compacted() -> None:
    player = Player(settings())
    player.history = tuple(message(2000 + number, "user", Text("hi"), run=99) for number in range(MOST_MESSAGES))
    assert player.run(["so"]).shown == "M C end_turn"


def test_an_overflow_is_compacted_and_the_call_made_again() -> None:
    turn = begin_turn(run_id(1), settings(), OLD, (SAID,))
    turn = evolve(turn, ContextOverflowed(1, 1, 20_000))
    assert decide(turn) == Compact(Trigger.CONTEXT_WINDOW_EXCEEDED)
    # What the refusal tells of the window holds for the run.
    assert turn.settings.context_window_limit == 20_000
    turn = evolve(turn, compacted(20, SAID))
    assert decide(turn) == CallModel(1, 2)
    again = evolve(turn, ContextOverflowed(1, 2, 30_000))
    assert again.settings.context_window_limit == 20_000
    assert (decide(again), again.compactions) == (Compact(Trigger.CONTEXT_WINDOW_EXCEEDED), 1)
    assert decide(evolve(turn, replace(REPLIED, attempt=2))) == RunTools(1, (call_of(CALLING),))


def test_an_overflow_after_a_reminder_reminds_no_second_time() -> None:
    one = play(settings(RequiredBeforeExit("a")), "so", "<a>", "so")
    turn = reduce(evolve, one.facts[:2], one.start)
    turn = evolve(evolve(turn, ContextOverflowed(2, 1)), compacted(20, None))
    assert decide(turn) == CallModel(2, 2)


def test_a_compaction_that_was_asked_for() -> None:
    assert play_compaction(settings(compact={})).shown == "C end_turn"


def play_compaction(agent: Settings) -> Played:
    player = Player(agent)
    player.history = OLD
    return player.run([])


# Beginnings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "roles"),
    [
        (settings(), "summary user assistant user"),
        (replace(settings(), message_buffer_autoclear=True), "user"),
        (replace(settings(agent_type="memgpt_agent"), message_buffer_autoclear=False), "summary user assistant user"),
    ],
)
def test_what_of_the_window_a_run_begins_with(agent: Settings, roles: str) -> None:
    before = (message(1, "summary", Text("{}"), run=9), *OLD[:2])
    assert " ".join(one.role for one in begin_turn(run_id(1), agent, before, (SAID,)).history) == roles


def test_a_window_with_calls_that_wait_is_not_cleared() -> None:
    asked = message(7, "assistant", Call("k", "a", "a", "{}", "approval"), run=9)
    answer = message(8, "approval", Decision("a", approve=True))
    agent = replace(settings(), message_buffer_autoclear=True)
    turn = begin_turn(run_id(1), agent, (*OLD, asked), (answer,))
    assert decide(turn) == RunTools(0, (call_of(asked),))


def test_a_reminder_is_the_same_whoever_writes_it() -> None:
    one = play(settings(RequiredBeforeExit("a")), "so", "<a>", "so")
    turn = reduce(evolve, one.facts[:1], one.start)
    assert isinstance(decide(turn), Remind)
    assert next_fact(turn) == next_fact(turn)
    said = one.turn.history[2]
    assert (said.role, said.run_id, said.created_at, said.step_id) == ("user", run_id(1), NOW, step_id(run_id(1), 1))


def call_of(one: Message) -> Call:
    (made,) = one.parts
    assert isinstance(made, Call)
    return made
