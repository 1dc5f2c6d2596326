"""The turns of a group's members: `core.ports_groups.Speakers` over nested turns.

A member speaks in a run of its own, in its own default conversation, with its own history; the run's id follows from
the group's run and from the place in the round, so whoever takes the round over finds it and goes on where it was.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid5

from services.agent.core.calls.agent_words import Answer
from services.agent.core.calls.arguments import Problem, parse
from services.agent.core.events import Abandoned, Delta
from services.agent.core.facts import MemberSpoke, Options, Speak, Usage
from services.agent.core.groups.plan import GroupPlan, plan_from_json
from services.agent.core.groups.policy import CHOOSE, HAND_OVER
from services.agent.core.groups.speech import Speech
from services.agent.core.groups.words import YOUR_TURN, instructions, told, tools_for, was_given_up
from services.agent.core.messages import Message, Text
from services.agent.core.ports import CallSite
from services.agent.core.ports_agents import AgentName
from services.agent.core.ports_journal import TurnRequest
from services.agent.core.turn import Turn, step_id
from services.agent.driving.agent_calls import SHARE
from services.agent.driving.nested_turns import NestedTurns
from services.common.context import current
from services.common.errors import LociError
from services.common.ids import to_public, uuid7


class Speakers:
    """Lets members speak."""

    def __init__(self, turns: NestedTurns) -> None:
        self._turns = turns

    async def speak(
        self, turn: Turn, action: Speak, site: CallSite, *, stream: bool
    ) -> AsyncGenerator[Delta | Abandoned | MemberSpoke]:
        """See ports_groups.Speakers.speak."""
        plan = _plan(turn)
        member = _speaker(plan, action.agent_id)
        message = _message(turn, action, member)
        speech = Speech(message)
        answer = None
        try:
            if was_given_up(turn.history, action.agent_id):
                await self._turns.decline(site.organization_id, action.agent_id)
            listen = self._turns.listen(self._request(turn, action, site, plan), site.run_id, stream=stream)
            async with aclosing(listen) as events:
                async for event in events:
                    if isinstance(event, Answer):
                        answer = event
                    elif stream:
                        for shown in speech.seen(event):
                            yield shown
            assert answer is not None
            yield _fact(action, member, message, answer, plan)
        except LociError as error:
            # It was deleted, or its line is full: the others go on without it.
            yield _silent(action, member, message, error.message)

    async def cancel(self, turn: Turn, action: Speak, site: CallSite) -> None:
        """See ports_groups.Speakers.cancel."""
        await self._turns.cancel(site.organization_id, [(run_of(turn.run_id, action.step), action.agent_id)])

    def _request(self, turn: Turn, action: Speak, site: CallSite, plan: GroupPlan) -> TurnRequest:
        caller, options = current(), turn.settings.options
        run_id = run_of(turn.run_id, action.step)
        left = max(1.0, SHARE * (site.deadline - time.time())) if site.deadline is not None else 1.0
        return TurnRequest(
            organization_id=site.organization_id,
            user_id=caller.user_id,
            ceiling=caller.ceiling,
            agent_id=action.agent_id,
            conversation_id=action.agent_id,
            run_id=run_id,
            messages=_input(turn, action, site, run_id),
            seconds=left,
            options=Options(
                max_steps=options.max_steps,
                instructions=instructions(plan, action.agent_id, action.tool),
                group_tools=tools_for(plan, action.agent_id, action.tool),
                group_members=dict(zip(plan.names, (str(each.id) for each in plan.members), strict=True)),
                hops=options.hops,
            ),
            ancestors=(*caller.ancestors, turn.run_id),
            on_busy="wait",
        )


def _input(turn: Turn, action: Speak, site: CallSite, run_id: UUID) -> tuple[Message, ...]:
    """Returns what a member is told: the answers to its calls, and what was said since it spoke."""
    now, sender_id = datetime.now(UTC), f"group-{site.agent_id}"
    parts = told(turn.history, action.agent_id)
    if not action.answers:
        return (Message(uuid7(), "user", parts or (Text(YOUR_TURN),), now, run_id, sender_id=sender_id),)
    answers = Message(uuid7(), "approval", action.answers, now, run_id)
    if not parts:
        return (answers,)
    return (answers, Message(uuid7(), "user", parts, now, run_id, sender_id=sender_id))


def run_of(group_run_id: UUID, step: int) -> UUID:
    """Returns the run of a turn of a round; the same whoever asks for it."""
    return uuid5(group_run_id, f"member-{step}")


def _plan(turn: Turn) -> GroupPlan:
    assert turn.settings.options.group is not None
    return plan_from_json(turn.settings.options.group)


def _speaker(plan: GroupPlan, agent_id: UUID) -> AgentName:
    if plan.manager is not None and plan.manager.id == agent_id:
        return plan.manager
    return plan.member(agent_id) or AgentName(agent_id, to_public("agent", agent_id))


def _choice(answer: Answer, plan: GroupPlan) -> str:
    """Returns the member that was named last by a tool of the group; empty for none."""
    for call in reversed(answer.calls):
        values = parse(call.arguments)
        if call.name in (CHOOSE, HAND_OVER) and not isinstance(values, Problem):
            name = values.get("name")
            return name if isinstance(name, str) and plan.named(name) is not None else ""
    return ""


def _message(turn: Turn, action: Speak, member: AgentName) -> Message:
    """Returns the message of a speech, still empty; it is shown with the first step of the member's run."""
    return Message(
        uuid5(turn.run_id, f"speech-{action.step}"),
        "assistant",
        (),
        datetime.now(UTC),
        turn.run_id,
        step_id(run_of(turn.run_id, action.step), 1),
        name=member.name,
        sender_id=to_public("agent", member.id),
    )


def _fact(action: Speak, member: AgentName, message: Message, answer: Answer, plan: GroupPlan) -> MemberSpoke:
    chosen = _choice(answer, plan)
    if not (answer.said or answer.waiting or chosen) and answer.problem:
        return _silent(action, member, message, answer.problem, answer.usage)
    said = (Text(answer.text),) if answer.said else ()
    message = replace(message, parts=(*said, *answer.waiting), created_at=datetime.now(UTC))
    return MemberSpoke(action.step, action.agent_id, message, answer.usage, chosen=chosen)


def _silent(
    action: Speak, member: AgentName, message: Message, problem: str, usage: Usage | None = None
) -> MemberSpoke:
    sentence = f"{member.name} could not speak: {problem}"
    message = replace(message, parts=(Text(f"({sentence})"),), created_at=datetime.now(UTC))
    return MemberSpoke(action.step, action.agent_id, message, usage or Usage(), problem=sentence)
