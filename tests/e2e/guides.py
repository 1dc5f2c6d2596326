"""Runs the Python of a page of docs/ as a reader would, block by block."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.stack import ROOT


def follow(page: str, outputs: Sequence[str], capsys: pytest.CaptureFixture[str], places: Mapping[str, str]) -> None:
    """Runs every block of docs/`page` in one namespace; each prints what its pattern says.

    places: texts of the page, as http://localhost:8283, and what stands for them here.
    """
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)
    assert len(blocks) == len(outputs)
    names: dict[str, Any] = {}
    for block, output in zip(blocks, outputs, strict=True):
        for text, place in places.items():
            block = block.replace(text, place)
        exec(block, names)
        printed = capsys.readouterr().out
        assert re.search(output, printed), f"{block}\nprinted\n{printed}"
    names["client"].close()
