"""A pytest plugin: how tests are dealt out where several workers run them (`pytest -n 2`).

One worker has, in their order, all that look at the machine as a whole: which containers there are, what is left of a
sandbox, which images an engine has. Tests of any other module are together on whichever worker is free.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.suite.parts import is_machine

_HEAP = "the whole machine"
# A module that starts stacks takes long with few tests, one of units is short with many: these come last.
_ORDER = (_HEAP, "tests/e2e/", "tests/integration/", "tests/contract/", "tests/")


class Dealing(LoadScopeScheduling):  # type: ignore[misc]
    """Deals out one heap and modules, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def _scope(nodeid: str) -> str:
    return _HEAP if is_machine(nodeid) else nodeid.partition("::")[0]


def _place(item: pytest.Item) -> int:
    scope = _scope(item.nodeid)
    return next(place for place, start in enumerate(_ORDER) if scope.startswith(start))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sorts what a worker collected; one process alone keeps pytest's order."""
    if hasattr(config, "workerinput"):
        items.sort(key=_place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing:
    """Returns the scheduler of the workers, if there are any."""
    config.option.loadscopereorder = False
    return Dealing(config, log)
