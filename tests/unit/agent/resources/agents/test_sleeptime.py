"""Which agents get a partner that tends their memory, and what it is like."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from services.agent.resources.agents.model.checks import check
from services.agent.resources.agents.model.settings import Agent, AgentSettings
from services.agent.resources.agents.model.sleeptime import (
    group_of,
    has_partner,
    ids_at_creation,
    lacks_partner,
    needs_persona,
    partner_values,
)
from services.agent.resources.groups import model as groups
from services.agent.resources.groups.model import Group

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND, USER = (UUID(int=number) for number in (1, 2, 3))
SETTINGS = AgentSettings(
    name="Ada",
    system="Be kind.",
    model="loci/demo",
    model_settings={"temperature": 0.5},
    embedding="loci/hash",
    context_window_limit=9_000,
    enable_sleeptime=True,
    project_id="p",
    tags=("one",),
)
GROUP = Group(id=UUID(int=4), created_at=NOW, updated_at=NOW)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"enable_sleeptime": False}, False),
        ({"enable_sleeptime": None}, False),
        ({"embedding": ""}, False),
    ],
)
def test_which_new_agents_get_a_partner(changes: dict[str, Any], expected: bool) -> None:
    assert has_partner(replace(SETTINGS, **changes)) == expected


@pytest.mark.parametrize(
    ("values", "embedding", "group", "expected"),
    [
        ({"enable_sleeptime": True}, "loci/hash", None, True),
        ({"enable_sleeptime": True}, "loci/hash", GROUP, False),
        ({"enable_sleeptime": True}, "", None, False),
        ({"enable_sleeptime": False}, "loci/hash", None, False),
        # The flag stands, and this change is about something else.
        ({"name": "Eve"}, "loci/hash", None, False),
    ],
)
def test_which_changes_give_an_agent_a_partner(
    values: dict[str, Any], embedding: str, group: Group | None, expected: bool
) -> None:
    agent = Agent(
        id=FIRST,
        version=1,
        settings=replace(SETTINGS, embedding=embedding),
        created_by_id=USER,
        last_updated_by_id=USER,
        created_at=NOW,
        updated_at=NOW,
        managed_group=group,
    )
    assert lacks_partner(agent, values) == expected


def test_a_partner_thinks_with_the_same_model() -> None:
    assert partner_values(SETTINGS) == {
        "name": "Ada-sleeptime",
        "agent_type": "sleeptime_agent",
        "model": "loci/demo",
        "model_settings": {"temperature": 0.5},
        "embedding": "loci/hash",
        "context_window_limit": 9_000,
        "project_id": "p",
    }


@pytest.mark.parametrize(("length", "expected"), [(246, 256), (247, 256), (256, 256)])
def test_a_partners_name_is_one_that_an_agent_may_have(length: int, expected: int) -> None:
    name = check(partner_values(replace(SETTINGS, name="x" * length)))["name"]
    assert (len(name), name[-10:]) == (expected, "-sleeptime")


@pytest.mark.parametrize(("labels", "expected"), [((), True), (("human",), True), (("memory_persona",), False)])
def test_no_partner_has_two_blocks_of_one_label(labels: tuple[str, ...], expected: bool) -> None:
    assert needs_persona(labels) == expected


def test_a_repeated_request_means_the_same_pair() -> None:
    assert ids_at_creation(FIRST) == ids_at_creation(FIRST)
    assert len({*ids_at_creation(FIRST), *ids_at_creation(SECOND), FIRST, SECOND}) == 6


def test_the_group_is_one_that_a_client_could_make() -> None:
    group = group_of(FIRST, SECOND)
    assert groups.check(group) == group
    assert (group.manager_agent_id, group.agent_ids, group.manager_type) == (FIRST, (SECOND,), "sleeptime")
    assert group.manager_settings == {"sleeptime_agent_frequency": 5}
