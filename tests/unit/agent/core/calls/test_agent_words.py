"""Messages between agents, and what counts as a reply."""

import json
from uuid import UUID

import pytest

from services.agent.core.calls.agent_words import Answer, addressed, replies_to_json, spoken
from services.agent.core.calls.arguments import Problem
from services.agent.core.facts import Failure, StopReason
from services.agent.core.messages import Call, Reasoning, Text
from services.agent.core.ports_agents import AgentName

ADA = AgentName(UUID(int=1), "Ada")
RUN = UUID(int=2)


def test_what_an_agent_says() -> None:
    speaks = Call("k", "c", "send_message", '{"message": "Hello."}')
    wrong = Call("k", "c", "send_message", '{"message": 5}')
    other = Call("k", "c", "roll", '{"message": "no"}')
    parts = (Reasoning("Hm."), Text("I say."), Text("  "), speaks, wrong, other)
    assert spoken(parts) == ["I say.", "Hello."]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Answer(RUN, ("Yes.",), StopReason.END_TURN), ""),
        (Answer(RUN, ("Yes.",), StopReason.MAX_STEPS), ""),
        (Answer(RUN, (), StopReason.END_TURN), "without a word"),
        (Answer(RUN, ("Wait.",), StopReason.REQUIRES_APPROVAL), "waits for a person"),
        (Answer(RUN, (), StopReason.ERROR, Failure(StopReason.ERROR, "e", "It broke.")), "It broke."),
        (Answer(RUN, (), StopReason.CANCELLED), "cancelled"),
    ],
)
def test_what_is_no_reply(answer: Answer, problem: str) -> None:
    assert problem in answer.problem
    assert bool(answer.problem) == bool(problem)


def test_calls_wait_where_the_run_ended_because_of_them() -> None:
    calls = (Call("k", "c", "roll", "{}", "approval"), Call("k", "d", "look", "{}"))
    assert Answer(RUN, (), StopReason.REQUIRES_APPROVAL, calls=calls).waiting == calls[:1]
    # They were given up with it.
    assert Answer(RUN, (), StopReason.CANCELLED, calls=calls).waiting == ()


def test_who_is_written_to_knows_whether_somebody_waits() -> None:
    assert "your reply" in addressed("?", ADA, waits=True)
    told = addressed("Well.", ADA, waits=False)
    assert "does not wait" in told
    assert told.endswith("\n\nWell.")


def test_replies_of_several() -> None:
    replies = json.loads(replies_to_json([ADA, ADA], ["Yes.", Problem(("It is gone.",))]))
    assert [each.get("reply") or each["error"] for each in replies] == ["Yes.", "It is gone."]
    assert replies[0]["agent_id"] == f"agent-{ADA.id}"
