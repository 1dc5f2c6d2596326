"""One call where a provider made several."""

from collections.abc import Sequence
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    Completed,
    Event,
    FinishReason,
    Generation,
    Message,
    Part,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    Role,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.core.parallel_calls import FirstCallOnly, first_call_only

A, B, C = (ToolCall(name, name, "{}") for name in "abc")
HIDDEN = RedactedReasoning("google:sig")


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ([], []),
        ([Text("a")], [Text("a")]),
        ([A], [A]),
        ([Text("before"), A, B, C], [Text("before"), A]),
        ([A, Text("between"), B, Text("after")], [A, Text("between"), Text("after")]),
        ([HIDDEN, A, HIDDEN, B], [HIDDEN, A]),
        ([Reasoning("hm", "s"), A, B], [Reasoning("hm", "s"), A]),
    ],
)
def test_the_first_call_is_kept(parts: Sequence[Part], kept: Sequence[Part]) -> None:
    assert first_call_only(parts) == kept


def deltas(parts: Sequence[Part]) -> list[Event]:
    """The stream of a reply; encrypted thoughts have none."""
    events: list[Event] = []
    for index, part in enumerate(parts):
        match part:
            case Text():
                events += [TextDelta(index, part.text), TextDelta(index, "")]
            case Reasoning():
                events.append(ReasoningDelta(index, part.text))
            case ToolCall():
                events += [ToolCallDelta(index, part.id, part.name, piece) for piece in ("", "{", "}")]
    return events


PART = st.sampled_from([Text("t"), Reasoning("r"), A, B])


@given(st.lists(PART, max_size=8), st.booleans())
def test_deltas_are_those_of_the_message_that_is_left(parts: list[Part], hidden: bool) -> None:
    if hidden:
        pairs: list[list[Part]] = [[HIDDEN, part] if isinstance(part, ToolCall) else [part] for part in parts]
        parts = list(chain.from_iterable(pairs))
    made = Generation(Message(Role.ASSISTANT, parts), FinishReason.TOOL_CALLS, Usage(9, 99))
    only = FirstCallOnly()
    passed = [one for event in [*deltas(parts), Completed(made)] if (one := only.passed(event)) is not None]
    assert isinstance(passed[-1], Completed)
    left = passed[-1].generation.message.parts
    assert passed[:-1] == deltas(left)
    assert sum(isinstance(part, ToolCall) for part in left) <= 1
    assert passed[-1].generation.usage == Usage(9, 99)
    assert only.excess == max(0, sum(isinstance(part, ToolCall) for part in parts) - 1)
