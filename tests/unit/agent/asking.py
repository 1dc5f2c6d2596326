"""Conversations in which calls wait for the client, and its answers."""

from typing import Any

from services.agent.core.approvals import Answer
from services.agent.core.facts import ClientTool
from services.agent.core.messages import Decision
from services.agent.core.rules.tool_rules import RequiresApproval
from tests.unit.agent.playing import Player, call, settings

GATED = (RequiresApproval("a"), RequiresApproval("b"))
MINE = ClientTool("mine", parameters={"type": "object", "properties": {"x": {"type": "integer"}}})
YES, NO = Decision("a", approve=True), Decision("a")
ALL = Decision(approve=True)


def waiting(*parts: Any, **player: Any) -> Player:
    """A conversation in which the calls of a reply wait: of a, for approval, unless others are given."""
    agent = player.pop("agent", None) or settings(*GATED, client_tools=(MINE,))
    player_ = Player(agent, **player)
    assert player_.run([parts or (call("a"),)]).shown == "M requires_approval"
    return player_


def answered(player: Player, *given: Answer | str, script: tuple[Any, ...] = ("so",)) -> Any:
    """A run that begins with answers, and follow-up messages."""
    answers = [part for part in given if not isinstance(part, str)]
    said = [part for part in given if isinstance(part, str)]
    return player.run(script, player.say(*answers, role="approval"), *map(player.say, said))
