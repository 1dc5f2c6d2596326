"""Who speaks next in a group, or that the round is over: a function of the plan and of what was said. Pure.

    round_robin   each member once, in order, or until so many have spoken
    supervisor    the manager, who may ask the members while it speaks
    dynamic       the manager names who speaks next, until it says the token, names nobody, or so many have spoken
    swarm         whoever has the floor; it may hand the floor over, and the next has it in later rounds, too

Each rule is a few lines of one function; the loop, the facts and the crash safety are those of every other run.
"""

from collections.abc import Sequence
from typing import assert_never
from uuid import UUID

from services.agent.core.facts import Failure, Finish, MemberSpoke, Speak, StopReason
from services.agent.core.groups.plan import GroupPlan
from services.agent.core.messages import Message

# The tools that a group gives to who speaks, for that turn.
ASK_MEMBERS, CHOOSE, HAND_OVER = "ask_members", "choose_next_speaker", "hand_over"


def next_speaker(plan: GroupPlan, before: Sequence[Message], spoke: Sequence[MemberSpoke], most: int) -> Speak | Finish:
    """Returns what to do after `spoke`; `before`: the group's messages of earlier rounds; `most`: turns of a round."""
    action = _next(plan, before, spoke)
    if isinstance(action, Finish):
        return _end(spoke)
    return Finish(StopReason.MAX_STEPS) if len(spoke) >= most else action


def _next(plan: GroupPlan, before: Sequence[Message], spoke: Sequence[MemberSpoke]) -> Speak | Finish:
    over, step, last = Finish(StopReason.END_TURN), len(spoke) + 1, spoke[-1] if spoke else None
    match plan.kind:
        case "round_robin":
            if len(spoke) >= (plan.max_turns or len(plan.members)):
                return over
            return Speak(step, plan.members[len(spoke) % len(plan.members)].id)
        case "supervisor":
            return over if last or plan.manager is None else Speak(step, plan.manager.id, ASK_MEMBERS)
        case "dynamic":
            if plan.manager is None:
                return over
            if last is None or last.agent_id != plan.manager.id:
                said = sum(each.agent_id != plan.manager.id for each in spoke)
                done = plan.max_turns is not None and said >= plan.max_turns
                return over if done else Speak(step, plan.manager.id, CHOOSE)
            chosen = None if plan.termination_token in last.text else plan.named(last.chosen)
            return over if chosen is None else Speak(step, chosen.id)
        case "swarm":
            if last is None:
                return Speak(step, holder(plan, before), HAND_OVER)
            chosen = plan.named(last.chosen)
            return over if chosen is None or chosen.id == last.agent_id else Speak(step, chosen.id, HAND_OVER)
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
