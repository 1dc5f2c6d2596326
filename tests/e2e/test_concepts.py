"""docs/concepts.md as somebody follows it: every block of Python in it runs, and shows what the text says."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import Stack

CONCEPTS = (Path(__file__).resolve().parents[2] / "docs" / "concepts.md").read_text()
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
    blocks = re.findall(r"```python\n(.*?)```", CONCEPTS, re.DOTALL)
    assert len(blocks) == len(OUTPUTS)
    names: dict[str, Any] = {}
    for block, output in zip(blocks, OUTPUTS, strict=True):
        exec(block.replace("http://localhost:8283", stack.url), names)
        printed = capsys.readouterr().out
        assert re.search(output, printed), f"{block}\nprinted\n{printed}"
    names["client"].close()
