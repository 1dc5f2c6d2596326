"""Queries of usage."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.llm_gateway.core.errors import UsageQueryInvalid
from services.llm_gateway.usage.model import Group, build_query

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def asked(days: float | None = None, *groups: Group, **fields: Any) -> Any:
    since = None if days is None else NOW - timedelta(days=days)
    return build_query(since, None, groups, **{"agent_id": None, "handle": "", "kind": "", "now": NOW, **fields})


def test_unset_is_the_last_month() -> None:
    query = asked()
    assert (query.since, query.until) == (NOW - timedelta(days=30), NOW)
    assert asked(366, Group.DAY, Group.MODEL, Group.AGENT).group_by == (Group.DAY, Group.MODEL, Group.AGENT)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: asked(0),
        lambda: asked(-1),
        lambda: asked(366.1),
        lambda: asked(31.1, Group.HOUR),
        lambda: asked(1, Group.DAY, Group.DAY),
        lambda: asked(1, Group.DAY, Group.MODEL, Group.AGENT, Group.KIND),
        lambda: asked(1, kind="images"),
    ],
)
def test_what_is_refused(ask: Any) -> None:
    with pytest.raises(UsageQueryInvalid):
        ask()
