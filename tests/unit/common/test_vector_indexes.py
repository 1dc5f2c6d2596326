"""The moment at which an index of vectors is due, and its name."""

from __future__ import annotations

import asyncpg
import pytest

from services.common.vector_indexes import IndexState, VectorIndex, tend


@pytest.mark.parametrize(
    ("state", "overdue"),
    [
        (IndexState(), False),
        (IndexState(waiting=10_000), False),
        (IndexState(waiting=10_001), True),
        (IndexState(valid=True, vectors=20_000, waiting=1_000), False),
        (IndexState(valid=True, vectors=20_000, waiting=1_001), True),
        (IndexState(broken=True), True),
    ],
)
def test_overdue(state: IndexState, overdue: bool) -> None:
    assert state.overdue is overdue


def test_an_index_is_of_one_model_at_its_dimension() -> None:
    index = VectorIndex("shop.photo_vectors", 7, 384)
    assert index.name == "photo_vectors_model_7"
    assert index.expression == "(embedding::halfvec(384))"
    assert index.condition == "model_id = 7 AND NOT waiting"


async def test_longer_vectors_than_it_can_hold_have_no_index() -> None:
    assert VectorIndex("shop.photo_vectors", 1, 4_000).possible
    longer = VectorIndex("shop.photo_vectors", 1, 4_001)
    assert not longer.possible
    assert await tend("nowhere is asked", longer, memory_mib=64), "there is nothing to do"


def test_a_container_without_shared_memory_is_recognized() -> None:
    """Postgres says out_of_memory where /dev/shm is too small, and disk_full where it is full."""
    assert issubclass(asyncpg.OutOfMemoryError, asyncpg.InsufficientResourcesError)
    assert issubclass(asyncpg.DiskFullError, asyncpg.InsufficientResourcesError)
