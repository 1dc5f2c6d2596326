"""Ceilings: equal ones are equal, and what is stored or sent comes back as it was."""

import pytest

from services.common.ceiling import ceiling_from_proto, ceiling_to_proto
from services.common.core.ceiling import Ceiling, ceiling, ceiling_from_json, ceiling_to_json

ONE = ceiling("client", {"agent-b": frozenset({"b", "a"}), "agent-a": frozenset()})
ALL = [ONE, Ceiling("developer"), ceiling("client", {})]


@pytest.mark.parametrize("value", ALL)
def test_it_comes_back_as_it_was(value: Ceiling) -> None:
    assert ceiling_from_proto(ceiling_to_proto(value)) == value
    assert ceiling_from_json(ceiling_to_json(value)) == value


def test_none_is_none() -> None:
    assert ceiling_from_json(ceiling_to_json(None)) is None


def test_equal_ones_are_equal() -> None:
    assert ceiling("client", {"agent-a": frozenset(), "agent-b": frozenset({"a", "b"})}) == ONE
    assert len({*ALL, ONE}) == 3


def test_rights() -> None:
    assert ONE.rights("agent-b") == frozenset({"a", "b"})
    assert (ONE.rights("agent-c"), ceiling("client", {}).rights("agent-a")) == (frozenset(), frozenset())
    assert Ceiling("developer").rights("agent-a") is None
