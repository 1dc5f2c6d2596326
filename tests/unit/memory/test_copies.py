"""What a copy of an agent's memory is made from."""

from dataclasses import replace
from uuid import UUID

import pytest

from services.memory.blocks.model import Block
from services.memory.core.editing.copies import copy_of, id_of_copy, to_copy
from tests.unit.memory.test_blocks import BLOCK


def block(number: int, label: str, value: str = "now") -> Block:
    return replace(BLOCK, id=UUID(int=number), label=label, value=value)


@pytest.mark.parametrize(
    ("present", "named", "copied"),
    [
        ([], [], []),
        ([(1, "a"), (2, "b")], [], ["1 a now", "2 b now"]),
        ([(1, "a"), (2, "b")], [(2, "b")], ["1 a now", "2 b then"]),
        ([(1, "a")], [(2, "b")], ["1 a now", "2 b then"]),  # detached since
        ([(1, "new"), (2, "b")], [(1, "old")], ["1 old then", "2 b now"]),  # renamed since
        ([(1, "b"), (2, "a")], [(1, "a")], ["1 a then"]),  # its label of then is another's today
        ([(2, "a"), (1, "b")], [(1, "a")], ["1 a then"]),
        ([(2, "a")], [(1, "a")], ["1 a then"]),  # replaced since by one of the same label
        ([(2, "a")], [(1, "a"), (2, "a")], ["2 a then"]),
    ],
)
def test_a_named_block_stands_as_it_was(
    present: list[tuple[int, str]], named: list[tuple[int, str]], copied: list[str]
) -> None:
    then = {UUID(int=number): block(number, label, "then") for number, label in named}
    found = to_copy([block(number, label) for number, label in present], then)
    assert [f"{one.id.int} {one.label} {one.value}" for one in found] == copied


def test_a_copy_has_all_that_a_client_may_set() -> None:
    source = replace(
        BLOCK, limit=30, description="d", read_only=True, hidden=True, metadata={"a": 1}, tags=("t",), version=7
    )
    draft = copy_of(source, UUID(int=9))
    assert draft.id == UUID(int=9)
    assert (draft.label, draft.value, draft.limit, draft.description) == ("human", "one\ntwo", 30, "d")
    assert (draft.read_only, draft.hidden, draft.metadata, draft.tags) == (True, True, {"a": 1}, ("t",))


def test_ids_of_copies_are_derived_from_tenant_request_and_source() -> None:
    ids = {
        id_of_copy(UUID(int=tenant), request, UUID(int=source))
        for tenant in (1, 2)
        for request in ("a", "b")
        for source in (1, 2)
    }
    assert len(ids) == 8
    assert id_of_copy(UUID(int=1), "a", UUID(int=1)) in ids
