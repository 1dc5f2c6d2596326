"""Default answers to calls that nobody answers, and what else ends waiting."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from services.agent.core.approval_timeouts import due_at, overdue_answers
from services.agent.core.approvals import Answer, decline_calls, find_repeated_run, waiting_runs
from services.agent.core.messages import Call, Decision, Message, Part, Return, Role, Text
from services.agent.core.rules.tool_rules import RequiresApproval, ToolRule

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
FIRST, SECOND, THIRD = (UUID(int=number) for number in (1, 2, 3))
RULES = (
    RequiresApproval("slow", 60, "approve"),
    RequiresApproval("quick", 1.5),
    RequiresApproval("patient"),
)


def message(number: int, role: Role, *parts: Part, run_id: UUID = FIRST) -> Message:
    return Message(UUID(int=number << 8), role, parts, NOW, run_id)


def call(name: str, gate: str = "approval") -> Call:
    return Call(f"key-{name}", name, name, "{}", gate)  # type: ignore[arg-type]


ASKED = message(2, "assistant", call("slow"), call("quick"), call("patient"), call("free", ""))
HISTORY = (message(1, "user", Text("Go.")), ASKED)


@pytest.mark.parametrize(
    ("rules", "answered", "seconds"),
    [
        (RULES, (), 1.5),
        (RULES, (Decision("quick", approve=True),), 60),
        (RULES, (Decision("quick"), Decision("slow")), None),
        (RULES[2:], (), None),
        # The first rule of a tool counts.
        ((RequiresApproval("quick", 9), *RULES), (), 9),
        ((), (), None),
    ],
)
def test_when_the_first_answer_is_due(
    rules: tuple[ToolRule, ...], answered: tuple[Part, ...], seconds: float | None
) -> None:
    history = (*HISTORY, message(3, "approval", *answered, run_id=SECOND))
    assert due_at(history, ASKED, rules) == (None if seconds is None else NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("after", "answers"),
    [(0.0, {}), (1.4, {}), (1.5, {"quick": False}), (59.9, {"quick": False}), (3600, {"slow": True, "quick": False})],
)
def test_what_is_answered_by_then(after: float, answers: dict[str, bool]) -> None:
    given = overdue_answers(HISTORY, ASKED, RULES, NOW + timedelta(seconds=after))
    assert {decision.call_id: decision.approve for decision in given} == answers
    assert all(decision.reason.startswith("Nobody answered within ") for decision in given)


def test_what_the_client_runs_itself_waits_for_ever() -> None:
    asked = message(2, "assistant", call("quick", "client"))
    assert due_at((asked,), asked, RULES) is None
    assert overdue_answers((asked,), asked, RULES, NOW + timedelta(days=400)) == ()


def test_times_are_told_in_plain_figures() -> None:
    asked = message(2, "assistant", call("year"))
    [decision] = overdue_answers((asked,), asked, (RequiresApproval("year", 31_536_000),), NOW + timedelta(days=366))
    assert decision.reason == "Nobody answered within 31536000 s, so the call was denied by its rule."


def test_waiting_that_is_given_up() -> None:
    history = (*HISTORY, message(3, "approval", Decision("slow", reason="too slow"), run_id=SECOND))
    returns = decline_calls(history, ASKED)
    assert [one.call_id for one in returns] == ["slow", "quick", "patient", "free"]
    assert all(one.is_error and one.refused for one in returns)
    assert "too slow" in returns[0].text
    assert len({one.text for one in returns[1:]}) == 1


def test_what_the_client_has_returned_stays_when_waiting_is_given_up() -> None:
    asked = message(2, "assistant", call("show", "client"), call("slow"))
    shown = message(3, "approval", Return("show", "", "a cat"), run_id=SECOND)
    first, second = decline_calls((asked, shown), asked)
    assert (first.text, first.is_error, second.is_error) == ("a cat", False, True)


def test_the_runs_that_ended_because_calls_wait() -> None:
    assert waiting_runs(HISTORY, ASKED) == (FIRST,)
    partial = [message(3, "approval", Decision("slow"), run_id=SECOND), message(4, "user", Text("And?"), run_id=SECOND)]
    last = message(5, "approval", Decision("quick"), run_id=THIRD)
    assert waiting_runs((*HISTORY, *partial, last), ASKED) == (FIRST, SECOND, THIRD)


@pytest.mark.parametrize(
    ("given", "run_id"),
    [
        ((Decision("a"),), SECOND),
        ((Decision("a"), Decision("b", approve=True)), SECOND),
        ((Decision(approve=True),), SECOND),
        ((Decision("c"),), THIRD),
        ((Decision("a"), Decision("c")), None),
        ((Decision("d"),), None),
    ],
)
def test_answers_that_are_on_their_way_already(given: tuple[Answer, ...], run_id: UUID | None) -> None:
    earlier = [(FIRST, ()), (SECOND, (Decision("a"), Return("b"))), (THIRD, (Decision("c"),))]
    assert find_repeated_run(given, earlier) == run_id


@pytest.mark.parametrize(
    ("given", "run_id"),
    [
        (Decision(approve=True, request_id="r2"), SECOND),
        (Decision("a", request_id="r2"), SECOND),
        (Decision("c", request_id="r2"), None),
        (Decision(approve=True, request_id="r3"), THIRD),
        (Decision(approve=True, request_id="r4"), None),
        (Decision(approve=True), SECOND),
        (Return("c"), THIRD),
    ],
)
def test_decisions_for_another_request_are_not_on_their_way(given: Answer, run_id: UUID | None) -> None:
    earlier = [(SECOND, (Decision("a", request_id="r2"),)), (THIRD, (Decision(approve=True, request_id="r3"),))]
    assert find_repeated_run((given,), earlier) == run_id
