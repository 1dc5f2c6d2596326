"""The ids and otids under which the pieces of a message are shown. LETTA V1 API, c.4."""

from dataclasses import replace
from uuid import UUID

import pytest

from services.agent.convert.messages import messages_to_proto
from services.agent.core.messages import Call, Message, Part, Reasoning, Text
from services.common.ids import to_public
from tests.unit.agent.playing import NOW, call

ID = UUID("01890000-0000-7000-8000-000000000120")
REPLY, REQUEST = to_public("message", ID), to_public("message", UUID(int=ID.int - 1))


def waits(name: str) -> Call:
    return replace(call(name), gate="approval")


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        ([Text("so")], [("assistant_message", REPLY)]),
        ([Text("so"), call("a")], [("assistant_message", REPLY), ("tool_call_message", REPLY)]),
        # All calls wait: text and thoughts are the request's.
        (
            [Reasoning("hm"), Text("may I?"), waits("a"), waits("b")],
            [("reasoning_message", REQUEST), ("assistant_message", REQUEST), ("approval_request_message", REQUEST)],
        ),
        # The request comes last, wherever its calls stand.
        (
            [Text("both"), waits("a"), call("b"), waits("c")],
            [("assistant_message", REPLY), ("tool_call_message", REPLY), ("approval_request_message", REQUEST)],
        ),
    ],
)
def test_what_pieces_are_called(parts: list[Part], shown: list[tuple[str, str]]) -> None:
    wires = messages_to_proto(Message(ID, "assistant", tuple(parts), NOW))
    assert [(wire.WhichOneof("message"), wire.id) for wire in wires] == shown
    for wire in wires:
        assert (wire.otid == REQUEST) is wire.HasField("approval_request_message")


def test_a_request_holds_all_calls_that_wait_and_no_others() -> None:
    *_, called, asked = messages_to_proto(Message(ID, "assistant", (waits("a"), call("b"), waits("c")), NOW))
    assert [one.tool_call_id for one in called.tool_call_message.tool_calls] == ["b"]
    assert [one.tool_call_id for one in asked.approval_request_message.tool_calls] == ["a", "c"]
