"""`memory`: the service, for a tenant of the test's own, on the module's migrated database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import MigratedUrl
from tests.integration.memory.harness import ConceptModels, Memory, embeddings, memory_service
from tests.integration.memory.moving import SIZES, WORDS, Moving, archive_with


@pytest.fixture(scope="module")
def memory_url(migrated_url: MigratedUrl) -> str:
    """The module's database with the schema `memory`."""
    return migrated_url("memory")


@pytest.fixture
async def memory(memory_url: str, tmp_path: Path) -> AsyncIterator[Memory]:
    """See `harness.Memory`."""
    models = ConceptModels()  # type: ignore[abstract] # the rest of that service is not called
    async with (
        embeddings(tmp_path, models) as llm_channel,
        memory_service(memory_url, tmp_path, llm_channel=llm_channel, models=models) as service,
    ):
        yield service


@pytest.fixture
async def moving(memory: Memory) -> Moving:
    """Six passages with vectors of EMBEDDING."""
    memory.models.sizes = dict(SIZES)
    await memory.pool.execute("DELETE FROM memory.jobs")
    return await archive_with(memory, *(f"A {word} of mine." for word in WORDS), "A kitten sleeps.")
