"""What agents of a type begin with, and the rules that tools bring."""

import pytest

from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import ContinueLoop, ExitLoop, MaxCount, RequiresApproval, ToolRule
from services.agent.resources.agents.model.base_tools import (
    BASE_TOOLS,
    has_base_rules,
    with_approvals,
    with_base_rules,
    without_approval,
)
from services.agent.resources.agents.model.instructions import INSTRUCTIONS


def test_every_type_has_a_policy_tools_and_instructions() -> None:
    assert BASE_TOOLS.keys() == POLICIES.keys() == INSTRUCTIONS.keys()
    assert len(BASE_TOOLS) == 9


@pytest.mark.parametrize("agent_type", BASE_TOOLS)
def test_instructions_speak_of_what_the_loop_does(agent_type: str) -> None:
    text, policy = INSTRUCTIONS[agent_type], POLICIES[agent_type]
    assert ("request_heartbeat" in text) == policy.heartbeats
    assert ("`thinking`" in text) == policy.inner_thoughts
    for ending in ("send_message", "memory_finish_edits"):
        assert (ending in text) == (ending in BASE_TOOLS[agent_type])


@pytest.mark.parametrize(
    ("agent_type", "usual"), [("letta_v1_agent", False), ("memgpt_agent", True), ("sleeptime_agent", True)]
)
def test_which_types_have_base_rules(agent_type: str, usual: bool) -> None:
    assert has_base_rules(agent_type) == usual


SEARCH, SEND, ROLL = "conversation_search", "send_message", "roll"


@pytest.mark.parametrize(
    ("rules", "names", "after"),
    [
        ((), (), ()),
        ((), (SEND, ROLL, SEARCH), (ExitLoop(SEND), ContinueLoop(SEARCH))),
        ((), ("send_message_to_agent_async", "memory_finish_edits"),
         (ExitLoop("send_message_to_agent_async"), ExitLoop("memory_finish_edits"))),
        ((ContinueLoop(SEND),), (SEND,), (ContinueLoop(SEND),)),
        ((ExitLoop(SEARCH),), (SEARCH,), (ExitLoop(SEARCH),)),
        ((MaxCount(SEARCH, 2),), (SEARCH,), (MaxCount(SEARCH, 2), ContinueLoop(SEARCH))),
    ],
)  # fmt: skip
def test_base_rules(rules: tuple[ToolRule, ...], names: tuple[str, ...], after: tuple[ToolRule, ...]) -> None:
    assert with_base_rules(rules, names) == after


def test_approvals_are_added_once_and_taken_away() -> None:
    timed = RequiresApproval(SEND, 5.0)
    rules = with_approvals((timed, ExitLoop(ROLL)), (SEND, ROLL, ROLL))
    assert rules == (timed, ExitLoop(ROLL), RequiresApproval(ROLL))
    assert without_approval(rules, ROLL) == (timed, ExitLoop(ROLL))
    assert without_approval(rules, "fly") == rules
