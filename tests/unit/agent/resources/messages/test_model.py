"""What another text makes of a message."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from services.agent.core.messages import Call, Image, Message, Part, Reasoning, Return, Role, Text
from services.agent.resources.messages.model import Kind, edit
from services.common.core.refusals import Refused

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CALL = Call("key", "call_1", "look", "{}")
SAYS = Call("key", "call_1", "send_message", '{"thinking":"Hm.","message":"Old."}')


def message(role: Role, *parts: Part) -> Message:
    """A stored one."""
    return Message(UUID(int=1), role, parts, NOW)


@pytest.mark.parametrize(
    ("before", "kind", "said", "after"),
    [
        (message("user", Text("Old.")), "user", (Text("New."), Image(url="u")), (Text("New."), Image(url="u"))),
        (message("system", Text("Old.")), "system", (Text("New."),), (Text("New."),)),
        (message("assistant", Text("Old.", "signed")), "assistant", (Text("New."),), (Text("New."),)),
        (
            message("assistant", Reasoning("Hm.", "s"), Text("a"), CALL, Text("b")),
            "assistant",
            (Text("New."),),
            (Reasoning("Hm.", "s"), Text("New."), CALL),
        ),
        (
            message("assistant", SAYS),
            "assistant",
            (Text("New."),),
            (replace(SAYS, arguments='{"thinking":"Hm.","message":"New."}'),),
        ),
        (
            message("assistant", Reasoning("Hm.", "signed", True), Reasoning("Ah."), Text("a")),
            "reasoning",
            (Text("New."),),
            (Reasoning("New.", "", True), Text("a")),
        ),
    ],
)
def test_the_text_changes_and_nothing_else(
    before: Message, kind: Kind, said: tuple[Part, ...], after: tuple[Part, ...]
) -> None:
    assert edit(before, kind, said) == replace(before, parts=after)


@pytest.mark.parametrize(
    ("before", "kind"),
    [
        (message("user", Text("Old.")), "assistant"),
        (message("assistant", Text("Old.")), "user"),
        (message("assistant", Text("Old.")), "reasoning"),
        (message("assistant", CALL), "assistant"),
        (message("assistant", replace(SAYS, arguments="[")), "assistant"),
        (message("assistant", replace(SAYS, arguments='{"message": 3}')), "assistant"),
        (message("tool", Return("call_1", "look", "x")), "assistant"),
        (message("summary", Text("Old.")), "user"),
    ],
)
def test_what_has_no_such_text_is_refused(before: Message, kind: Kind) -> None:
    with pytest.raises(Refused, match="could be changed"):
        edit(before, kind, (Text("New."),))
