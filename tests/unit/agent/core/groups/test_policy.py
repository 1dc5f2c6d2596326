"""Who speaks next, for each kind of group: rounds played through the pure function."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from services.agent.core.facts import Failure, Finish, MemberSpoke, Speak, StopReason, Usage
from services.agent.core.groups.plan import GroupPlan, Kind, plan_from_json
from services.agent.core.groups.policy import go_on, next_speaker, spoken_before
from services.agent.core.groups.words import (
    LEFT_OUT,
    MOST_CHARS,
    MOST_MESSAGES,
    instructions,
    told,
    tools_for,
    was_given_up,
)
from services.agent.core.messages import Call, Decision, Image, Message, Role, Text
from services.agent.core.ports_agents import AgentName

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADA, BOB, EVE, BOSS = (
    AgentName(UUID(int=number), name) for number, name in enumerate(("Ada", "Bob", "Eve", "Boss"), 1)
)
RUN = UUID(int=99)


def plan(kind: Kind, **settings: object) -> GroupPlan:
    manager = BOSS if kind in ("supervisor", "dynamic") else None
    return replace(GroupPlan(kind, (ADA, BOB, EVE), manager), **settings)  # type: ignore[arg-type]


def said(speaker: AgentName, text: str) -> Message:
    return message("assistant", text, speaker)


def message(role: Role, text: str, speaker: AgentName | None = None) -> Message:
    name, sender_id = (None, None) if speaker is None else (speaker.name, f"agent-{speaker.id}")
    parts = (Text(text),) if text else ()
    return Message(UUID(int=7), role, parts, NOW, RUN, name=name, sender_id=sender_id)


# What a member says and, if it names somebody, whom.
Says = Callable[[AgentName, int], tuple[str, str]]


def play(group: GroupPlan, says: Says, *, before: tuple[Message, ...] = (), most: int = 50) -> tuple[list[str], Finish]:
    """The names of who spoke, in order, and the end."""
    by_id = {each.id: each for each in (ADA, BOB, EVE, BOSS)}
    spoke: list[MemberSpoke] = []
    while True:
        action = next_speaker(group, before, spoke, step=len(spoke) + 1, most=most)
        if isinstance(action, Finish):
            return [by_id[each.agent_id].name for each in spoke], action
        assert action.step == len(spoke) + 1
        text, chosen = says(by_id[action.agent_id], action.step)
        spoke.append(MemberSpoke(action.step, action.agent_id, said(by_id[action.agent_id], text), Usage(), chosen))


def plainly(speaker: AgentName, step: int) -> tuple[str, str]:
    return f"{speaker.name} says {step}.", ""


@pytest.mark.parametrize(
    ("max_turns", "order"),
    [(None, "Ada Bob Eve"), (2, "Ada Bob"), (5, "Ada Bob Eve Ada Bob")],
)
def test_round_robin_goes_round(max_turns: int | None, order: str) -> None:
    names, end = play(plan("round_robin", max_turns=max_turns), plainly)
    assert (" ".join(names), end.stop_reason) == (order, StopReason.END_TURN)


def test_a_supervisor_speaks_once_and_may_ask() -> None:
    assert next_speaker(plan("supervisor"), (), (), step=1, most=50) == Speak(1, BOSS.id, "ask_members")
    assert play(plan("supervisor"), plainly) == (["Boss"], Finish(StopReason.END_TURN))


def test_a_dynamic_manager_chooses_until_it_says_the_token() -> None:
    choices = {1: ("", "Eve"), 3: ("And now?", "Ada"), 5: ("DONE!", "Bob")}
    names, end = play(plan("dynamic"), lambda who, step: choices.get(step, plainly(who, step)))
    assert (names, end.stop_reason) == (["Boss", "Eve", "Boss", "Ada", "Boss"], StopReason.END_TURN)


def test_a_dynamic_group_ends_after_so_many_speeches_of_members() -> None:
    names, _ = play(plan("dynamic", max_turns=2), lambda who, step: ("", "Eve") if who == BOSS else ("So.", ""))
    assert names == ["Boss", "Eve", "Boss", "Eve"]


def test_a_manager_that_names_nobody_ends_the_round() -> None:
    assert play(plan("dynamic"), plainly)[0] == ["Boss"]


def test_a_swarm_hands_over_and_the_next_round_begins_where_it_stayed() -> None:
    names, _ = play(plan("swarm"), lambda who, step: ("Go on.", "Eve") if step == 1 else plainly(who, step))
    assert names == ["Ada", "Eve"]
    assert play(plan("swarm"), plainly, before=(said(ADA, "Go on."), said(EVE, "Well.")))[0] == ["Eve"]
    # A member that has left has the floor no more.
    gone = AgentName(UUID(int=50), "Gone")
    assert play(plan("swarm"), plainly, before=(said(BOB, "So."), said(gone, "Bye.")))[0] == ["Bob"]


def test_a_swarm_that_hands_over_for_ever_has_an_end() -> None:
    other = {ADA: "Bob", BOB: "Ada"}
    names, end = play(plan("swarm"), lambda who, step: ("You!", other[who]), most=6)
    assert (len(names), end.stop_reason) == (6, StopReason.MAX_STEPS)


def test_a_round_in_which_nobody_could_speak_has_failed() -> None:
    failed = [MemberSpoke(step, ADA.id, said(ADA, ""), Usage(), problem="Ada is gone.") for step in (1, 2, 3)]
    end = next_speaker(plan("round_robin"), (), failed, step=4, most=50)
    assert isinstance(end, Finish)
    assert isinstance(end.failure, Failure)
    assert (end.stop_reason, end.failure.message) == (StopReason.ERROR, "Ada is gone.")


def test_each_is_told_what_was_said_since_it_spoke_with_names() -> None:
    history = (message("user", "Hello."), said(ADA, "I am Ada."), said(BOB, "I am Bob."), message("user", "And?"))
    (for_ada,) = told(history, ADA.id)
    assert for_ada == Text("[Bob] I am Bob.\n\n[user] And?")
    (for_eve,) = told(history, EVE.id)
    assert for_eve == Text("[user] Hello.\n\n[Ada] I am Ada.\n\n[Bob] I am Bob.\n\n[user] And?")
    # What a person says alone comes as it is, pictures too.
    picture = Image(url="https://example.com/cat.png")
    alone = replace(message("user", "Look."), parts=(Text("Look."), picture))
    assert told((alone,), ADA.id) == (Text("Look."), picture)


def test_who_was_silent_for_long_is_told_the_newest() -> None:
    many = [said(BOB, f"Number {number}.") for number in range(1_000)]
    (words,) = told([message("user", "Hello."), *many], ADA.id)
    assert isinstance(words, Text)
    first, *lines = words.text.split("\n\n")
    assert (first, len(lines), lines[-1]) == (LEFT_OUT, MOST_MESSAGES, "[Bob] Number 999.")
    long = [said(BOB, "x" * (MOST_CHARS // 2)) for _ in range(4)]
    (words,) = told(long, ADA.id)
    assert isinstance(words, Text)
    assert len(words.text) < MOST_CHARS + 100
    # One that is too long alone is told all the same: its model says what is wrong with it.
    (words,) = told([message("user", "x" * 2 * MOST_CHARS)], ADA.id)
    assert isinstance(words, Text)
    assert len(words.text) == 2 * MOST_CHARS


@pytest.mark.parametrize("tool", ["ask_members", "choose_next_speaker", "hand_over"])
def test_who_can_be_named_is_an_enum(tool: str) -> None:
    (given,) = tools_for(plan("swarm"), ADA.id, tool)
    assert given.name == tool
    assert given.parameters["properties"]["name"]["enum"] == ["Bob", "Eve"]
    assert "Bob, Eve" in instructions(plan("swarm"), ADA.id, tool)


def test_two_of_one_name_are_told_apart() -> None:
    twin = AgentName(UUID(int=9), "Ada")
    group = GroupPlan("swarm", (ADA, twin))
    assert group.named("Ada") == ADA
    assert group.named(group.names[1]) == twin


def test_a_plan_is_read_as_it_was_stored() -> None:
    group = plan("dynamic", max_turns=3, termination_token="END")
    assert plan_from_json(group.to_json()) == group


def test_who_spoke_is_read_from_the_runs_that_an_answer_continues() -> None:
    older, asking, answered = UUID(int=50), UUID(int=51), UUID(int=52)
    call = replace(said(BOB, "May I?"), parts=(Call(id="call_0", name="roll", gate="approval"),))

    def at(run_id: UUID, *messages: Message) -> list[Message]:
        return [replace(each, run_id=run_id, step_id=UUID(int=1) if each.sender_id else None) for each in messages]

    answers = replace(message("approval", ""), parts=(Decision("call_0", approve=True),))
    history = [
        *at(older, message("user", "Hello."), said(EVE, "Long ago.")),
        *at(asking, message("user", "Now."), message("assistant", "Said by a client."), said(ADA, "A"), call),
        *at(answered, answers, said(BOB, "B"), replace(call, id=UUID(int=8))),
    ]
    assert [each.agent_id for each in spoken_before(history)] == [ADA.id, BOB.id]


def test_the_answer_goes_to_who_asked_under_its_own_ids() -> None:
    call = replace(said(BOB, "May I?"), parts=(Call(id="call_0", name="roll", gate="approval"),))
    given = {"call_0": Decision("", approve=True, request_id="the group's")}
    action = go_on(plan("swarm"), call, given, step=4)
    assert action == Speak(4, BOB.id, "hand_over", (Decision("call_0", approve=True),))


def test_what_was_given_up_is_known_until_the_member_speaks() -> None:
    call = replace(said(BOB, "May I?"), parts=(Call(id="call_0", name="roll", gate="approval"),))
    declined = message("tool", "")
    assert was_given_up((call, declined, message("user", "Go on."), said(ADA, "A")), BOB.id)
    assert not was_given_up((call, declined, said(BOB, "Well.")), BOB.id)
    assert not was_given_up((call,), BOB.id)
    assert not was_given_up((said(BOB, "Well."), declined), ADA.id)
