"""Tools are found by words and by meaning; without an embedder, by words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_pb
from services.common.database import open_pool
from services.common.errors import InvalidArgument, Unavailable
from services.llm_gateway.vendors.demo import hashing
from services.tool_runner.core.model import Tool, ToolType
from services.tool_runner.tools.store import PostgresTools
from tests.integration.tool_runner.harness import ROLL, Service, fails, tool_runner
from tests.integration.tool_runner.many_tools import QUESTIONS, TOOLS
from tests.page_requests import paged

VECTOR, TEXT, HYBRID = tool_pb.SEARCH_MODE_VECTOR, tool_pb.SEARCH_MODE_TEXT, tool_pb.SEARCH_MODE_HYBRID
CUSTOM = [tool_pb2.TOOL_TYPE_CUSTOM]


@dataclass
class HashEmbedder:
    """`loci/hash` without the llm gateway. `asked` are the numbers of texts of its calls."""

    hangs: bool = False
    away: bool = False
    refuses: str = ""
    asked: list[int] = field(default_factory=list)

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        self.asked.append(len(texts))
        if self.hangs:
            await asyncio.sleep(seconds + 60)
        if self.away:
            raise Unavailable("nobody is there", reason="PEER_UNAVAILABLE")
        if self.refuses and any(self.refuses in text for text in texts):
            raise InvalidArgument("that text is too long", reason="LLM_BAD_REQUEST")
        return [hashing.embed(text) for text in texts]


@asynccontextmanager
async def service(url: str, folder: Path, embedder: HashEmbedder | None) -> AsyncIterator[Service]:
    """A tool runner whose tenant has the sixty tools."""
    async with tool_runner(url, folder, embedder=embedder) as runner:
        async with await open_pool(url) as pool:
            store = PostgresTools(pool)
            for row in TOOLS:
                await store.insert(runner.caller.organization_id, runner.caller.user_id, tool_of(*row))
        yield runner


def tool_of(name: str, description: str, arguments: str, tags: tuple[str, ...] = ()) -> Tool:
    """A tool that was never parsed."""
    properties = {argument: {"type": "string"} for argument in arguments.split(", ") if argument}
    schema = {"name": name, "description": description, "parameters": {"type": "object", "properties": properties}}
    return Tool(
        id=uuid4(),
        name=name,
        description=description,
        tool_type=ToolType.CUSTOM,
        source_type="python",
        source_code="",
        json_schema=json.dumps(schema),
        tags=tags,
    )


async def found(runner: Service, query: str, **options: Any) -> tool_pb.SearchToolsResponse:
    return await runner.tools.SearchTools(tool_pb.SearchToolsRequest(query=query, **options))


async def names(runner: Service, query: str, **options: Any) -> list[str]:
    return [hit.tool.name for hit in (await found(runner, query, **options)).hits]


async def test_the_right_tool_is_among_the_first_three(tool_url: str, tmp_path: Path) -> None:
    async with service(tool_url, tmp_path, HashEmbedder()) as runner:
        right = dict.fromkeys((HYBRID, VECTOR, TEXT), 0)
        for question, name in QUESTIONS:
            for mode in right:
                right[mode] += name in await names(runner, question, mode=mode, limit=3)
        assert right[HYBRID] >= 18, right


async def test_words_alone_find_names_their_parts_and_tags(tool_url: str, tmp_path: Path) -> None:
    async with service(tool_url, tmp_path, None) as runner:
        response = await found(runner, "sending emails")
        assert response.mode == TEXT
        assert [response.hits[0].tool.name, response.hits[0].text_rank] == ["send_email", 1]
        assert not response.hits[0].HasField("vector_rank")
        assert (await names(runner, "transl"))[0] == "translate_text"
        assert (await names(runner, "restart_server"))[0] == "restartServer"
        assert (await names(runner, "createCalendarEvent"))[0] == "createCalendarEvent"
        assert (await names(runner, "OCR"))[0] == "ocr_image"
        assert await names(runner, "zebra", tool_types=CUSTOM) == []
        assert await names(runner, "the of and", tool_types=CUSTOM) == []
        await runner.upsert(ROLL.replace("Roll a die", "Würfelt eine Zahl"), tags=["board_games"])
        assert await names(runner, "eine WÜRFELT") == ["roll_dice"]
        assert await names(runner, "games") == ["roll_dice"]
        assert await names(runner, "roll", tags=["cards"]) == []
        assert await names(runner, "", tags=["board_games", "cards"]) == ["roll_dice"]
        assert (await names(runner, "", limit=2))[0] == "roll_dice"
        with runner.of(uuid4()):
            assert "send_email" not in await names(runner, "send_email")


async def test_searches_that_make_no_sense_are_refused(runner: Service) -> None:
    for request in (
        tool_pb.SearchToolsRequest(query="x" * 10_001),
        tool_pb.SearchToolsRequest(query="x", limit=101),
        tool_pb.SearchToolsRequest(query="x", limit=-1),
        tool_pb.SearchToolsRequest(query="x", mode=9),  # type: ignore[arg-type]
    ):
        with fails(InvalidArgument, "TOOL_SEARCH_INVALID"):
            await runner.tools.SearchTools(request)
    assert await names(runner, "' OR 1=1; \\ & | ! :* <-> %_", tool_types=CUSTOM) == []


async def test_vectors_follow_what_is_written(tool_url: str, tmp_path: Path) -> None:
    embedder = HashEmbedder()
    async with tool_runner(tool_url, tmp_path, embedder=embedder) as runner:
        await runner.upsert()
        assert (await names(runner, "roll a die", mode=VECTOR, tool_types=CUSTOM)) == ["roll_dice"]
        asked = len(embedder.asked)
        await found(runner, "roll a die")
        assert embedder.asked[asked:] == [1]  # nothing was missing: the query alone
        changed = await runner.upsert(ROLL.replace("Roll a die", "Toss a cube"))
        hit = (await found(runner, "toss a cube", mode=VECTOR)).hits[0]
        assert (hit.tool.version, hit.vector_rank, hit.embedded_text.splitlines()[:2]) == (
            changed.version,
            1,
            ["roll dice", "Toss a cube."],
        )
        await runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=changed.id))
        assert "roll_dice" not in await names(runner, "toss a cube", mode=VECTOR)


async def test_what_a_model_refuses_costs_no_other_tool_its_vector(tool_url: str, tmp_path: Path) -> None:
    embedder = HashEmbedder(refuses="Bitcoin")
    async with service(tool_url, tmp_path, embedder) as runner:
        in_vectors = await names(runner, "flights between airports", mode=VECTOR, limit=100)
        assert in_vectors[0] == "search_flights"
        assert "get_crypto_price" not in in_vectors
        assert len(in_vectors) > len(TOOLS)
        before = len(embedder.asked)
        await found(runner, "flights", mode=VECTOR)
        assert len(embedder.asked) == before + 1  # the refused one is not tried again


@pytest.mark.parametrize("embedder", [HashEmbedder(hangs=True), HashEmbedder(away=True)], ids=["hangs", "away"])
async def test_an_embedder_in_trouble_costs_two_seconds_once_and_words_answer(
    tool_url: str, tmp_path: Path, embedder: HashEmbedder
) -> None:
    embedder.asked.clear()
    async with service(tool_url, tmp_path, embedder) as runner:
        for _ in range(2):
            # One that hangs would hold it for a minute more.
            async with asyncio.timeout(30):
                response = await found(runner, "send an email", mode=VECTOR)
            assert response.mode == TEXT
            assert response.hits[0].tool.name == "send_email"
            # The second time it is left alone.
            assert embedder.asked.count(1) == 1


async def test_tools_are_counted_with_the_filters_of_lists(runner: Service) -> None:
    async def count(**options: Any) -> int:
        request = tool_pb.CountToolsRequest(filter=tool_pb.ListToolsRequest(**paged(**options)))
        return (await runner.tools.CountTools(request)).count

    base = len((await runner.tools.EnsureBaseTools(tool_pb.EnsureBaseToolsRequest())).tools)
    tool = await runner.upsert()
    assert await count() == base + 1
    assert await count(tool_types=CUSTOM) == 1
    assert await count(exclude_tool_types=CUSTOM) == base
    assert await count(name="roll_dice", search="die", tool_ids=[tool.id]) == 1
    assert await count(search="nothing like it") == 0
    with runner.of(UUID(int=uuid4().int)):
        assert await count(tool_types=CUSTOM) == 0
