"""Who speaks next in a group, or that the round is over: a function of the plan and of what was said. Pure.

    round_robin   each member once, in order, or until so many have spoken
    supervisor    the manager, who may ask the members while it speaks
    dynamic       the manager names who speaks next, until it says the token, names nobody, or so many have spoken
    swarm         whoever has the floor; it may hand the floor over, and the next has it in later rounds, too

Each rule is a few lines of one function; the loop, the facts and the crash safety are those of every other run.

Where a member's call waits for the client, so does the round: its run ends as that of an agent would, with the call as
what the member said. The answer begins a run that goes on with that member, and then with the round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import assert_never
from uuid import UUID

from services.agent.core.approvals import Answer
from services.agent.core.facts import Failure, Finish, MemberSpoke, Speak, StopReason, Usage
from services.agent.core.groups.plan import GroupPlan
from services.agent.core.messages import Decision, Message, gated_calls

# The tools that a group gives to who speaks, for that turn.
ASK_MEMBERS, CHOOSE, HAND_OVER = "ask_members", "choose_next_speaker", "hand_over"


def next_speaker(
    plan: GroupPlan, before: Sequence[Message], spoke: Sequence[MemberSpoke], *, step: int, most: int
) -> Speak | Finish:
    """Returns what to do after `spoke`, as turn number `step` of the run; `before`: the group's messages of earlier
    rounds; `most`: turns of a round.
    """
    action = _next(plan, before, spoke, step)
    if isinstance(action, Finish):
        return _end(spoke)
    return Finish(StopReason.MAX_STEPS) if len(spoke) >= most else action


def go_on(plan: GroupPlan, asked: Message, answers: Mapping[str, Answer], step: int) -> Speak:
    """Returns the next turn of who made the calls in `asked`; `answers`: the client's, by the provider's id."""
    agent_id = _sender(asked)
    # The member shows its request under another id.
    given = (
        replace(answer, call_id=call_id, request_id="")
        if isinstance(answer, Decision)
        else replace(answer, call_id=call_id)
        for call_id, answer in answers.items()
    )
    return Speak(step, agent_id, _tool(plan, agent_id), tuple(given))


def spoken_before(history: Sequence[Message]) -> tuple[MemberSpoke, ...]:
    """Returns who had a whole turn in the runs that an answer to waiting calls continues.

    What a client says in the role of an assistant has no step, and is nobody's turn.
    """
    spoke: tuple[MemberSpoke, ...] = ()
    for _, messages in groupby(reversed(history), key=lambda message: message.run_id):
        run = tuple(messages)
        speeches = [each for each in reversed(run) if each.role == "assistant" and each.step_id is not None]
        whole = [each for each in speeches if not gated_calls(each)]
        spoke = (*(MemberSpoke(0, _sender(each), each, Usage()) for each in whole), *spoke)
        if run[-1].role != "approval":
            break
    return spoke


def _sender(message: Message) -> UUID:
    return UUID((message.sender_id or "").removeprefix("agent-"))


def _tool(plan: GroupPlan, agent_id: UUID) -> str:
    """Returns the tool that a group gives to an agent when it speaks; empty for none."""
    leads = plan.manager is not None and plan.manager.id == agent_id
    match plan.kind:
        case "round_robin":
            return ""
        case "supervisor":
            return ASK_MEMBERS if leads else ""
        case "dynamic":
            return CHOOSE if leads else ""
        case "swarm":
            return HAND_OVER
    assert_never(plan.kind)


def _next(plan: GroupPlan, before: Sequence[Message], spoke: Sequence[MemberSpoke], step: int) -> Speak | Finish:
    def speak(agent_id: UUID) -> Speak:
        return Speak(step, agent_id, _tool(plan, agent_id))

    over, last = Finish(StopReason.END_TURN), spoke[-1] if spoke else None
    match plan.kind:
        case "round_robin":
            if len(spoke) >= (plan.max_turns or len(plan.members)):
                return over
            return speak(plan.members[len(spoke) % len(plan.members)].id)
        case "supervisor":
            return over if last or plan.manager is None else speak(plan.manager.id)
        case "dynamic":
            if plan.manager is None:
                return over
            if last is None or last.agent_id != plan.manager.id:
                said = sum(each.agent_id != plan.manager.id for each in spoke)
                done = plan.max_turns is not None and said >= plan.max_turns
                return over if done else speak(plan.manager.id)
            chosen = None if plan.termination_token in last.text else plan.named(last.chosen)
            return over if chosen is None else speak(chosen.id)
        case "swarm":
            if last is None:
                return speak(holder(plan, before))
            chosen = plan.named(last.chosen)
            return over if chosen is None or chosen.id == last.agent_id else speak(chosen.id)
    assert_never(plan.kind)


def holder(plan: GroupPlan, before: Sequence[Message]) -> UUID:
    """Returns the member of a swarm that has the floor: who spoke last, and the first one at the beginning."""
    for message in reversed(before):
        for member in plan.members:
            if message.role == "assistant" and message.sender_id == f"agent-{member.id}":
                return member.id
    return plan.members[0].id


def _end(spoke: Sequence[MemberSpoke]) -> Finish:
    """Returns the end of a round; one in which nobody could speak has failed."""
    if spoke and all(each.problem for each in spoke):
        failure = Failure(StopReason.ERROR, "internal_error", spoke[0].problem, reason="GROUP_CANNOT_SPEAK")
        return Finish(StopReason.ERROR, failure)
    return Finish(StopReason.END_TURN)
