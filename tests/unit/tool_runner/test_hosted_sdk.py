"""A vendor's SDK that is not installed: the error says which command installs it."""

import sys

import pytest

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.hosted.sdk import import_sdk


@pytest.mark.parametrize("name", ["e2b", "modal"])
async def test_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SandboxUnavailable, match=f"run `make setup EXTRAS={name}`"):
        await import_sdk(name)
