"""The pure loop by the table: what is decided after which facts."""

from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from uuid import UUID

import pytest

from services.agent.core.facts import (
    Action,
    CallModel,
    Fact,
    Failure,
    Finish,
    ModelFailed,
    ModelReplied,
    Options,
    RunEnded,
    RunTools,
    Settings,
    StopReason,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from services.agent.core.messages import Call, Message, Return, Text
from services.agent.core.ports_journal import Commit
from services.agent.core.turn import CANCELLED, OVERDUE, Turn, add_usage, call_key, decide, evolve, step_id
from services.agent.postgres.rows import step_rows

RUN = UUID("01890000-0000-7000-8000-000000000001")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = Settings(1, "loci/demo", "loci/hash", "Be kind.", 32_000, options=Options(max_steps=2))
BAD = Failure(StopReason.LLM_API_ERROR, "llm_timeout", "It took too long.", reason="LLM_TIMEOUT")


def message(role: str, *parts: Text | Call | Return, number: int = 1) -> Message:
    return Message(UUID(int=number << 64), role, parts, NOW, RUN)  # type: ignore[arg-type]


def call(step: int, index: int = 0) -> Call:
    return Call(call_key(RUN, step, index), f"call_{step}_{index}", "roll", "{}")


SPOKE = UserSpoke(SETTINGS, (message("user", Text("hi")),))


def replied(step: int, *parts: Text | Call, finish: str = "stop") -> ModelReplied:
    return ModelReplied(step, 1, message("assistant", *parts, number=step + 10), Usage(10, 2), finish)


def returned(step: int) -> ToolsReturned:
    return ToolsReturned(step, message("tool", Return(f"call_{step}_0", "roll", "4"), number=step + 20))


def known(*facts: Fact) -> Turn:
    return reduce(evolve, facts, Turn(RUN, SETTINGS))


@pytest.mark.parametrize(
    ("facts", "action"),
    [
        ([SPOKE], CallModel(1, 1)),
        ([SPOKE, replied(1, Text("hello"))], Finish(StopReason.END_TURN)),
        ([SPOKE, replied(1)], Finish(StopReason.END_TURN)),
        ([SPOKE, replied(1, Text("hel"), finish="length")], Finish(StopReason.MAX_TOKENS_EXCEEDED)),
        ([SPOKE, replied(1, call(1))], RunTools(1, (call(1),))),
        ([SPOKE, replied(1, Text("so"), call(1), call(1, 1))], RunTools(1, (call(1), call(1, 1)))),
        ([SPOKE, replied(1, call(1), finish="length")], RunTools(1, (call(1),))),
        ([SPOKE, replied(1, call(1)), returned(1)], CallModel(2, 1)),
        ([SPOKE, replied(1, call(1)), returned(1), replied(2, Text("4"))], Finish(StopReason.END_TURN)),
        ([SPOKE, replied(1, call(1)), returned(1), replied(2, call(2))], RunTools(2, (call(2),))),
        ([SPOKE, replied(1, call(1)), returned(1), replied(2, call(2)), returned(2)], Finish(StopReason.MAX_STEPS)),
        ([SPOKE, ModelFailed(1, 1, BAD)], Finish(StopReason.LLM_API_ERROR, BAD)),
        ([SPOKE, replied(1, call(1)), returned(1), ModelFailed(2, 1, BAD)], Finish(StopReason.LLM_API_ERROR, BAD)),
    ],
)
def test_decide(facts: list[Fact], action: Action) -> None:
    assert decide(known(*facts)) == action


def test_an_interruption_comes_before_everything() -> None:
    turn = known(SPOKE, replied(1, call(1)))
    assert decide(replace(turn, interruption=CANCELLED)) == Finish(StopReason.CANCELLED)
    assert decide(replace(turn, interruption=OVERDUE)) == Finish(StopReason.ERROR, OVERDUE)


def test_a_lost_owner_makes_the_next_attempt() -> None:
    turn = evolve(Turn(RUN, SETTINGS, attempt=3), SPOKE)
    assert decide(turn) == CallModel(1, 3)
    assert decide(evolve(evolve(turn, replied(1, call(1))), returned(1))) == CallModel(2, 1)


def test_an_owner_lost_while_tools_ran_abandons_no_model_call() -> None:
    turn = replace(known(SPOKE, replied(1, call(1))), attempt=2)
    assert decide(evolve(turn, returned(1))) == CallModel(2, 1)


STEP_ENDS: list[tuple[tuple[Fact, ...], tuple[Fact, ...], tuple[int, str] | None]] = [
    ((SPOKE,), (replied(1, call(1)),), (1, "pending")),
    ((SPOKE, replied(1, call(1))), (returned(1),), (1, "success")),
    ((SPOKE,), (replied(1, Text("hi")), RunEnded(StopReason.END_TURN)), (1, "success")),
    ((SPOKE,), (ModelFailed(1, 1, BAD), RunEnded(StopReason.LLM_API_ERROR, BAD)), (1, "failed")),
    ((SPOKE, replied(1, call(1))), (returned(1), RunEnded(StopReason.MAX_STEPS)), (1, "success")),
    # Interrupted while tools run.
    ((SPOKE, replied(1, call(1))), (RunEnded(StopReason.CANCELLED),), (1, "cancelled")),
    ((SPOKE, replied(1, call(1))), (RunEnded(StopReason.ERROR, OVERDUE),), (1, "failed")),
    # Interrupted in a model call: the step before it is over.
    ((SPOKE,), (RunEnded(StopReason.CANCELLED),), None),
    ((SPOKE, replied(1, call(1)), returned(1)), (RunEnded(StopReason.CANCELLED),), None),
]


@pytest.mark.parametrize(("before", "facts", "expected"), STEP_ENDS)
def test_what_becomes_of_a_step(
    before: tuple[Fact, ...], facts: tuple[Fact, ...], expected: tuple[int, str] | None
) -> None:
    commit = Commit(facts, tuple(range(len(facts))), known(*before, *facts), None)
    rows = [(row["number"], row["status"]) for row in step_rows(commit)]
    assert rows == ([] if expected is None else [expected])


def test_history_grows_by_what_was_said() -> None:
    turn = known(SPOKE, replied(1, call(1)), returned(1), replied(2))
    assert [each.role for each in turn.history] == ["user", "assistant", "tool"]
    assert turn.usage == Usage(20, 4)
    assert turn.context_tokens == 12


def test_an_ended_turn_has_nothing_pending() -> None:
    turn = known(SPOKE, replied(1, call(1)), RunEnded(StopReason.CANCELLED))
    assert turn.ended == RunEnded(StopReason.CANCELLED)
    assert turn.pending == ()


def test_usage_keeps_what_is_unknown_unknown() -> None:
    assert add_usage(Usage(1, 2), Usage(3, 4, cached_input_tokens=1)) == Usage(4, 6, cached_input_tokens=1)


def test_ids_are_the_same_for_every_owner() -> None:
    assert step_id(RUN, 1) == step_id(RUN, 1) != step_id(RUN, 2)
    assert call_key(RUN, 1, 0) == f"{RUN}/1/0"
