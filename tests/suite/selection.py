"""A pytest plugin: `--parts "short deaths"` runs those parts alone; a test is marked `long` or `machine` by place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suite.parts import SHORT, all_names, is_machine, part_of, parts_of_file


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --parts."""
    parser.addoption("--parts", default="", help=f"run these parts alone: {SHORT} {' '.join(all_names())}")


def _wanted(config: pytest.Config) -> set[str]:
    wanted = set(config.getoption("parts").split())
    if unknown := wanted - {SHORT, *all_names()}:
        raise pytest.UsageError(f"--parts: there is no part {', '.join(sorted(unknown))}")
    return wanted


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out modules that have nothing of the parts that are asked for."""
    wanted = _wanted(config)
    if (
        not wanted
        or not collection_path.name.startswith("test_")
        or not collection_path.is_relative_to(config.rootpath)
    ):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return True if wanted.isdisjoint(parts_of_file(path)) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks every test by its part, and keeps those of the parts that are asked for."""
    wanted = _wanted(config)
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        part = part_of(item.nodeid)
        if part != SHORT:
            item.add_marker("long")
        if is_machine(item.nodeid):
            item.add_marker("machine")
        (kept if not wanted or part in wanted else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
