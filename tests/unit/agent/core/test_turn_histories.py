"""Whatever models reply and rules say: a turn ends, its calls are answered, and the next message can be taken."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from services.agent.core.approvals import ApprovalPending, InputFits, check_input
from services.agent.core.facts import ClientTool, StopReason
from services.agent.core.messages import Decision, Return, calls_of
from services.agent.core.policy import POLICIES
from services.agent.core.rules.tool_rules import (
    Children,
    Conditional,
    ContinueLoop,
    ExitLoop,
    MaxCount,
    ParentLast,
    RequiredBeforeExit,
    RequiresApproval,
    RunFirst,
    ToolRule,
)
from services.agent.core.window.context import sendable
from tests.unit.agent import playing
from tests.unit.agent.histories import sound
from tests.unit.agent.playing import Played, Player, Reply, Script, call

STEPS = 5
names = st.sampled_from("abcd")
groups = st.lists(names, min_size=1, max_size=3, unique=True).map(tuple)
arguments = st.sampled_from([None, {}, {"x": 1}, {"x": "many"}, {"y": 1}])
rules: st.SearchStrategy[ToolRule] = st.one_of(
    st.builds(RunFirst, names, arguments),
    st.builds(Children, names, groups),
    st.builds(ParentLast, names, groups),
    st.builds(Conditional, names, st.dictionaries(st.sampled_from(["done", "no"]), names, max_size=2), names),
    st.builds(MaxCount, names, st.integers(1, 2)),
    st.builds(ContinueLoop, names),
    st.builds(ExitLoop, names),
    st.builds(RequiredBeforeExit, names),
    st.builds(RequiresApproval, names),
)
replies: st.SearchStrategy[Script] = st.one_of(
    st.sampled_from(["", "so", "<a>", "<b>", "<c>", "<d>", "<ab>", "<dca>"]),
    st.sampled_from([call("mine"), call("fly"), call("a", request_heartbeat=True), call("b", x=1, thinking="hm")]),
    st.builds(Reply, st.just((call("a"),)), st.sampled_from(["stop", "length"]), st.sampled_from([10, 31_000])),
)
returned: st.SearchStrategy[str | Return] = st.sampled_from(["done", "no", Return(text="no", is_error=True)])


@st.composite
def players(draw: st.DrawFn) -> Player:
    agent = playing.settings(
        *draw(st.lists(rules, max_size=4)),
        agent_type=draw(st.sampled_from([*POLICIES])),
        client_tools=draw(st.sampled_from([(), (ClientTool("mine"),), (ClientTool("a"),)])),
        max_steps=STEPS,
    )
    return Player(agent, returns=draw(st.dictionaries(names, returned, max_size=2)))


def check(player: Player, played: Played) -> None:
    """Checks what holds after every run."""
    history = played.turn.history
    assert played.turn.step <= STEPS
    assert sound(sendable(history))
    verdict = check_input(history, [player.say("and now?")])
    assert isinstance(verdict, ApprovalPending if played.end is StopReason.REQUIRES_APPROVAL else InputFits)
    if played.end is not StopReason.REQUIRES_APPROVAL:
        asked = Counter(one.id for message in history for one in calls_of(message))
        returned = Counter(part.call_id for one in history for part in one.parts if isinstance(part, Return))
        assert asked == returned


@settings(max_examples=150, deadline=None)
@given(players(), st.lists(st.lists(replies, min_size=STEPS, max_size=STEPS), min_size=3, max_size=3), st.booleans())
def test_every_turn_ends_and_can_be_followed(player: Player, scripts: list[list[Script]], approve: bool) -> None:
    played = player.run(scripts[0])
    check(player, played)
    for script in scripts[1:]:
        if played.end is StopReason.REQUIRES_APPROVAL:
            played = player.run(script, player.say(Decision(approve=approve), role="approval"))
        else:
            played = player.run(script)
        check(player, played)


# Where the counts of all tools are used up, all may be called again.
counts = st.dictionaries(names, st.integers(1, 2), min_size=1, max_size=3)


@settings(max_examples=100, deadline=None)
@given(counts, st.lists(replies, min_size=STEPS, max_size=STEPS))
def test_counts_hold(most: dict[str, int], script: list[Script]) -> None:
    agent = playing.settings(*(MaxCount(name, count) for name, count in most.items()), max_steps=STEPS)
    ran = Counter(one.name for one in Player(agent).run(script).ran)
    assert all(ran[name] <= count for name, count in most.items())
