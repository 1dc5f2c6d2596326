"""Settings of groups, by their declaration."""

from typing import Any
from uuid import UUID

import pytest

from loci.agent.v1.group_pb2 import Group
from services.agent.resources.groups.convert import drafts
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument


def test_what_is_stored() -> None:
    agent_ids = [f"agent-{UUID(int=number)}" for number in (1, 2, 1)]
    settings = drafts.draft(Group(description="a\0", agent_ids=agent_ids)).values
    assert (settings.description, settings.agent_ids) == ("a", (UUID(int=1), UUID(int=2)))
    assert (settings.manager_type, settings.manager_settings) == ("round_robin", {})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"manager_type": "anarchy"}, "manager_type must be one of: round_robin, "),
        ({"description": "x" * 10_001}, "description must have at most 10,000 characters, not 10,001"),
        ({"agent_ids": [f"agent-{UUID(int=n)}" for n in range(1_001)]}, "agent_ids must have at most 1,000 items"),
        ({"manager_settings_json": "[]"}, "manager_settings must be a JSON object, not a list"),
        ({"manager_settings_json": "{"}, "manager_settings must be a JSON object"),
        ({"manager_settings_json": "5"}, "manager_settings must be a JSON object"),
    ],
)
def test_what_cannot_be(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        drafts.draft(Group(**fields))
    assert caught.value.reason == "GROUP_INVALID"


def test_what_an_update_may_name() -> None:
    assert drafts.mask(["hidden"]) == {"hidden"}
    with pytest.raises(InvalidArgument, match="on a group: name"):
        drafts.mask(["name"])
