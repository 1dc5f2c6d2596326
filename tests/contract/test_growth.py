"""docs/growth.md says of every table what bounds it, and names none that is not there."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "growth.md").read_text()
_MADE = re.compile(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)\.(\w+) \(")
_DROPPED = re.compile(r"DROP TABLE (\w+)\.(\w+)")


def tables() -> set[tuple[str, str]]:
    """Schema and name of every table of the newest revision."""
    made: set[tuple[str, str]] = set()
    for path in sorted(ROOT.glob("services/*/migrations/versions/*.py")):
        upgrade = path.read_text().split("def downgrade")[0]
        up = upgrade if "_DOWN" not in upgrade else upgrade.split("_DOWN = ")[0]
        made -= set(_DROPPED.findall(up))
        made |= set(_MADE.findall(up))
    return made


def named() -> Iterator[tuple[str, str]]:
    """Those that the page names: by their full name, or in the row of their service."""
    yield from re.findall(r"`(agent|memory|llm_gateway|tool_runner)\.(\w+)`", PAGE)
    for service, row in re.findall(r"^\| (agent|memory|llm_gateway|tool_runner) \| (.*) \|$", PAGE, re.MULTILINE):
        yield from ((service, name) for name in re.findall(r"`(\w+)`", row))


def test_every_table_is_there_once() -> None:
    listed = list(named())
    assert sorted(listed) == sorted(tables())
