"""What may be set on groups."""

from typing import Any
from uuid import UUID

import pytest

from services.agent.resources.groups.model import GroupSettings, change, check
from services.common.core.drafts import Draft
from services.common.core.refusals import Refused

ONE, TWO, BLOCK = UUID(int=1), UUID(int=2), UUID(int=3)


def draft(*names: str, **fields: Any) -> Draft[GroupSettings]:
    """An update that names these fields."""
    return Draft(GroupSettings(**fields), frozenset(names))


@pytest.mark.parametrize(
    ("manager_type", "given", "stored"),
    [
        ("round_robin", {"max_turns": None}, {}),
        ("round_robin", {"max_turns": 1}, {"max_turns": 1}),
        ("supervisor", {}, {}),
        ("dynamic", {"termination_token": None}, {"termination_token": "DONE!"}),
        ("dynamic", {"termination_token": "stop", "max_turns": 3}, {"termination_token": "stop", "max_turns": 3}),
        ("sleeptime", {"sleeptime_agent_frequency": 5}, {"sleeptime_agent_frequency": 5}),
        (
            "voice_sleeptime",
            {"min_message_buffer_length": 4, "max_message_buffer_length": 5},
            {"min_message_buffer_length": 4, "max_message_buffer_length": 5},
        ),
        ("swarm", {}, {}),
    ],
)
def test_managers_that_can_be(manager_type: str, given: dict[str, Any], stored: dict[str, Any]) -> None:
    managed = manager_type not in ("round_robin", "swarm")
    settings = GroupSettings(
        manager_type=manager_type, manager_agent_id=ONE if managed else None, manager_settings=given
    )
    assert check(settings).manager_settings == stored


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"manager_type": "supervisor"}, "manager_agent_id is missing"),
        ({"manager_agent_id": ONE}, "manager_agent_id has none with the manager type round_robin"),
        ({"manager_settings": {"max_turns": 0}}, "manager_config.max_turns must be a whole number"),
        ({"manager_settings": {"max_turns": True}}, "a whole number"),
        ({"manager_settings": {"max_turns": "3"}}, "a whole number"),
        ({"manager_settings": {"colour": 1}}, "manager_config.colour is not for the manager type round_robin"),
        (
            {"manager_type": "dynamic", "manager_agent_id": ONE, "manager_settings": {"termination_token": ""}},
            "a text of 1 to 256",
        ),
        (
            {
                "manager_type": "voice_sleeptime",
                "manager_agent_id": ONE,
                "manager_settings": {"min_message_buffer_length": 5, "max_message_buffer_length": 5},
            },
            "must be below the greatest length, 5",
        ),
    ],
)
def test_what_cannot_be(given: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says) as caught:
        check(GroupSettings(**given))
    assert caught.value.reason == "GROUP_INVALID"


def test_a_change_touches_the_mask_only() -> None:
    before = check(GroupSettings(description="a", agent_ids=(ONE, TWO), shared_block_ids=(BLOCK,)))
    assert before.shares == {(ONE, BLOCK), (TWO, BLOCK)}
    after = change(before, draft("description", description="b", hidden=True))
    assert (after.description, after.agent_ids, after.hidden) == ("b", (ONE, TWO), False)


def test_settings_are_laid_over_those_of_the_same_manager() -> None:
    managed = ("manager_type", "manager_agent_id", "manager_settings")
    first = draft(*managed, manager_type="dynamic", manager_agent_id=ONE, manager_settings={"max_turns": 3})
    before = change(GroupSettings(), first)
    new = draft(*managed, manager_type="dynamic", manager_agent_id=TWO, manager_settings={"termination_token": "."})
    after = change(before, new)
    assert after.manager_settings == {"termination_token": ".", "max_turns": 3}
    assert after.agents == {TWO}
    gone = draft("manager_settings", manager_settings={"max_turns": None})
    assert change(after, gone).manager_settings == {"termination_token": "."}
    # With another type all begins anew.
    free = change(after, draft("manager_type"))
    assert (free.manager_type, free.manager_agent_id, free.manager_settings) == ("round_robin", None, {})
    supervised = change(after, draft("manager_type", manager_type="supervisor"))
    assert (supervised.manager_agent_id, supervised.manager_settings) == (TWO, {})
