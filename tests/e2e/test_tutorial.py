"""docs/tutorial.md as somebody follows it: every block of Python in it runs, and shows what the text says."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import Stack

TUTORIAL = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text()
# What each block prints; the first only makes an agent.
SHOWN = [
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
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    assert len(blocks) == len(SHOWN)
    here: dict[str, Any] = {}
    for block, shown in zip(blocks, SHOWN, strict=True):
        exec(block.replace("http://localhost:8283", stack.url), here)
        said = capsys.readouterr().out
        assert re.search(shown, said), f"{block}\nshowed\n{said}"
    here["client"].close()
