"""A reranker reads the best of a hybrid search once more, where the operator has one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from loci.llm.v1 import model_service_pb2 as llm_pb
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as pb
from services.common.errors import Unavailable
from services.common.search_settings import STANDARD
from tests.integration.memory.harness import ConceptModels, Memory, embeddings, memory_service

SETTINGS = replace(STANDARD, reranker="test/judge")


@dataclass
class Judge(ConceptModels):
    """Prefers short texts."""

    asked: list[llm_pb.RerankRequest] = field(default_factory=list)

    async def Rerank(self, request: llm_pb.RerankRequest, context: Any) -> llm_pb.RerankResponse:
        """One score per text."""
        self.asked.append(request)
        if self.failure is not None:
            raise self.failure
        return llm_pb.RerankResponse(scores=[1 / len(text) for text in request.texts])


@pytest.fixture
async def judged(memory_url: str, tmp_path: Path) -> AsyncIterator[tuple[Memory, Judge]]:
    judge = Judge()  # type: ignore[abstract] # the rest of that service is not called
    async with (
        embeddings(tmp_path, judge) as channel,
        memory_service(memory_url, tmp_path, llm_channel=channel, models=judge, search_settings=SETTINGS) as memory,
    ):
        yield memory, judge


async def stored(memory: Memory, *texts: str) -> str:
    """An agent whose archive has the texts, without vectors."""
    agent = await memory.agent_with()
    drafts = [pb.PassageDraft(text=text) for text in texts]
    await memory.passages.CreatePassages(pb.CreatePassagesRequest(agent_id=agent, passages=drafts))
    return agent


def texts(hits: Any) -> list[str]:
    return [hit.passage.text for hit in hits]


async def test_hybrid_searches_have_its_order_and_others_their_own(judged: tuple[Memory, Judge]) -> None:
    memory, judge = judged
    agent = await stored(memory, "A parrot named Biscuit came, a parrot!", "The parrot", "Tea")
    found = await memory.search(agent, "the name of the parrot")
    assert texts(found) == ["Tea", "The parrot", "A parrot named Biscuit came, a parrot!"]
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    [request] = judge.asked
    assert (request.handle, request.query) == ("test/judge", "the name of the parrot")
    by_words = await memory.search(agent, "parrot", mode=passage_pb2.SEARCH_MODE_TEXT)
    assert len(by_words) == 2
    assert len(judge.asked) == 1


async def test_while_it_does_not_answer_the_order_stays(judged: tuple[Memory, Judge]) -> None:
    memory, judge = judged
    agent = await stored(memory, "A parrot named Biscuit came, a parrot!", "Tea")
    judge.failure = Unavailable("busy", reason="LLM_SERVER_ERROR")
    assert texts(await memory.search(agent, "parrot"))[0].startswith("A parrot")
    assert len(judge.asked) == 1


async def test_nothing_found_asks_for_nothing(judged: tuple[Memory, Judge]) -> None:
    memory, judge = judged
    assert await memory.search(await stored(memory, "Tea"), "parrot") == []
    assert judge.asked == []
