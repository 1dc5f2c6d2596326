"""docs/concepts.md as somebody follows it: every block of Python in it runs, and shows what the text says."""

import pytest

from tests.e2e.guides import follow
from tests.e2e.stack import Stack

# What each block prints.
OUTPUTS = [
    r"^$",
    r"^$",
    r"tool_call_message\ntool_return_message\nassistant_message",
    r"completed end_turn 2",
    r"Ada",
    r"^$",
    r"heliotrope",
    r"^$",
    r"HELLO",
    r"^$",
    r"loci/demo",
    r"^$",
    r"^$",
]


def test_the_concepts(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    follow("concepts.md", OUTPUTS, capsys, {"http://localhost:8283": stack.url})
