"""Agents counted, and their tags."""

from typing import Any

import pytest

from loci.agent.v1 import agent_service_pb2 as wire
from services.common.errors import InvalidArgument
from tests.integration.agent.admin_world import OTHER_ORGANIZATION, AdminWorld
from tests.page_requests import paged


async def test_agents_are_counted_as_they_are_listed(world: AdminWorld) -> None:
    for number in range(3):
        await world.create(name=f"ant {number}", tags=["a", f"n{number}"])
    await world.create(name="bee", hidden=True)
    gone = await world.create(name="ant gone")
    await world.delete(gone.id)
    await world.create(OTHER_ORGANIZATION, name="ant there")

    async def count(**fields: Any) -> int:
        request = wire.CountAgentsRequest(filter=wire.ListAgentsRequest(**paged(**fields)))
        return int((await world.call(world.agents.CountAgents, request)).count)

    assert await count() == 3
    assert await count(show_hidden=True) == 4
    assert await count(query_text="ANT", page_size=1) == 3
    assert await count(tags=["n0", "n1"]) == 2
    assert await count(tags=["a", "n1"], match_all_tags=True) == 1


async def test_tags_page_by_name(world: AdminWorld) -> None:
    await world.create(tags=["b", "Zebra"])
    await world.create(tags=["a", "b", "é"], hidden=True)
    gone = await world.create(tags=["gone"])
    await world.delete(gone.id)
    await world.create(OTHER_ORGANIZATION, tags=["theirs"])

    async def tags(**fields: Any) -> list[str]:
        found = await world.call(world.agents.ListAgentTags, wire.ListAgentTagsRequest(**paged(**fields)))
        return list(found.tags)

    assert await tags() == ["Zebra", "a", "b", "é"]
    assert await tags(descending=True) == ["é", "b", "a", "Zebra"]
    assert await tags(page_size=2, after="Zebra") == ["a", "b"]
    assert await tags(page_size=2, before="é") == ["a", "b"]
    assert await tags(page_size=1, descending=True, before="a") == ["b"]
    assert await tags(after="Zebra", before="b") == ["a"]
    assert await tags(query_text="EB") == ["Zebra"]
    assert await tags(query_text="_") == []
    with pytest.raises(InvalidArgument):
        await tags(page_size=1_001)
