"""A pytest plugin: how tests are dealt out where several workers run them (`pytest -n 2`).

One worker has, in their order, all that look at the machine as a whole: which processes and containers there are, what
is left of a sandbox. The tests of any other module are together on whichever worker is free.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_WHOLE_MACHINE = (
    "tests/contract/tool_runner/",
    "tests/e2e/",
    "tests/integration/cli/",
    "tests/integration/tool_runner/",
)


class Dealing(LoadScopeScheduling):  # type: ignore[misc]
    """Modules, and one heap; the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        return "the whole machine" if nodeid.startswith(_WHOLE_MACHINE) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing:
    """That of the workers, if there are any."""
    return Dealing(config, log)
