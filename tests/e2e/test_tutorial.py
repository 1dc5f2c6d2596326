"""docs/tutorial.md as somebody follows it: every block of Python in it runs, and shows what the text says."""

import pytest

from tests.e2e.guides import follow
from tests.e2e.stack import Stack

# What each block prints; the first only makes an agent.
OUTPUTS = [
    r"",
    r"Ada[\s\S]*Haskell",
    r"tool_call_message[\s\S]*usage_statistics[\s\S]*heliotrope",
    r"rolled \d+",
    r"Ada",
    r"requires_approval\nmemory_insert .*Grace[\s\S]*Grace",
    r"Alan[^\n]*\n(?![\s\S]*Alan)[\s\S]*Ada",
    r"assistant_message [\s\S]*Ada[\s\S]*stop_reason",
    r"\['I like Prolog\.', 'What is my name\?'\]\n(?!.*Prolog).*Haskell.*\n.*Prolog",
]


def test_the_tutorial(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    follow("tutorial.md", OUTPUTS, capsys, {"http://localhost:8283": stack.url})
