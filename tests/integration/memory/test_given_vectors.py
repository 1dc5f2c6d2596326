"""Passages that bring their vectors with them: stored as they are, by models that nobody need serve."""

from __future__ import annotations

from typing import Any

import pytest

from loci.memory.v1 import archive_service_pb2 as pb
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passages_pb
from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from services.common.ids import uuid7
from tests.integration.memory.harness import EMBEDDING, Memory, concept_vector, fails

UNKNOWN = "elsewhere/embedder"


async def archive(memory: Memory, embedding: str = UNKNOWN, **fields: Any) -> Any:
    draft = passage_pb2.Archive(name="Brought", embedding=embedding, **fields)
    return (await memory.archives.CreateArchive(pb.CreateArchiveRequest(archive=draft))).archive


async def put(memory: Memory, archive_id: str, *drafts: passages_pb.PassageDraft) -> list[Any]:
    request = passages_pb.CreatePassagesRequest(archive_id=archive_id, passages=drafts)
    return list((await memory.passages.CreatePassages(request)).passages)


def draft(text: str, *vector: float, **fields: Any) -> passages_pb.PassageDraft:
    return passages_pb.PassageDraft(text=text, embedding=vector, **fields)


async def test_an_archive_keeps_a_model_that_nobody_serves(memory: Memory) -> None:
    with fails(NotFound, "MODEL_NOT_FOUND"):
        await archive(memory)
    archive_id = f"archive-{uuid7()}"
    created = await archive(memory, id=archive_id, dimensions=4)
    assert (created.embedding, created.dimensions) == (UNKNOWN, 4)
    assert await archive(memory, id=archive_id, dimensions=4) == created
    with fails(AlreadyExists, "ARCHIVE_ID_TAKEN"):
        await archive(memory, id=archive_id, dimensions=5)
    for wrong in ({"dimensions": -1}, {"dimensions": 16_001}, {"embedding": "", "dimensions": 4}):
        with fails(InvalidArgument, "ARCHIVE_INVALID"):
            await archive(memory, **wrong)


async def test_vectors_are_stored_without_asking_a_model(memory: Memory) -> None:
    created = await archive(memory, dimensions=2)
    passage_id = f"passage-{uuid7()}"
    brought = [draft("the cat sleeps", 3.0, 4.0, id=passage_id), draft("nowhere", 0.0, 0.0)]
    stored = await put(memory, created.id, *brought)
    assert [one.embedding for one in stored] == [UNKNOWN, ""]
    assert not memory.models.callers
    vectors = await memory.pool.fetch(
        "SELECT v.embedding::text FROM memory.passage_vectors v JOIN memory.passages p ON p.id = v.passage_id"
        " WHERE p.archive_id = $1::uuid",
        created.id.removeprefix("archive-"),
    )
    assert [row["embedding"] for row in vectors] == ["[0.60009766,0.7998047]"]
    again = await put(memory, created.id, draft("the cat sleeps", 3.0, 4.0, id=passage_id))
    assert [one.id for one in again] == [passage_id]

    request = passages_pb.SearchPassagesRequest(archive_id=created.id, query="cat", top_k=1)
    found = await memory.passages.SearchPassages(request)
    assert [hit.passage.text for hit in found.hits] == ["the cat sleeps"], "by words, as long as nobody serves it"
    assert list(found.without_vectors) == [UNKNOWN]


async def test_vectors_are_searched_when_their_model_is_served(memory: Memory) -> None:
    created = await archive(memory, EMBEDDING, dimensions=6)
    await put(memory, created.id, draft("a", *concept_vector("cat")), draft("b", *concept_vector("tea")))
    assert not memory.models.callers
    request = passages_pb.SearchPassagesRequest(
        archive_id=created.id, query="kitten", top_k=1, mode=passage_pb2.SEARCH_MODE_VECTOR
    )
    assert [hit.passage.text for hit in (await memory.passages.SearchPassages(request)).hits] == ["a"]


async def test_a_first_vector_tells_the_dimensions(memory: Memory) -> None:
    created = await archive(memory, EMBEDDING)
    await put(memory, created.id, draft("a", 1.0, 0.0, 0.0))
    found = (await memory.archives.GetArchive(pb.GetArchiveRequest(archive_id=created.id))).archive
    assert (found.dimensions, found.passage_count) == (3, 1)


@pytest.mark.parametrize(
    "brought",
    [
        [draft("a", 1.0)],
        [draft("a", 1.0, 2.0, 3.0)],
        [draft("a", 1.0, 2.0), draft("b")],
        [draft("a"), draft("b", 1.0, 2.0)],
        [draft("a", 1.0, 2.0), draft("b", 1.0)],
        [draft("a", 1.0, float("nan"))],
        [draft("a", 1.0, float("inf"))],
    ],
)
async def test_wrong_vectors_are_refused(memory: Memory, brought: list[passages_pb.PassageDraft]) -> None:
    created = await archive(memory, dimensions=2)
    with fails(InvalidArgument, "PASSAGE_INVALID"):
        await put(memory, created.id, *brought)
    found = (await memory.archives.GetArchive(pb.GetArchiveRequest(archive_id=created.id))).archive
    assert (found.dimensions, found.passage_count) == (2, 0)


async def test_an_archive_without_a_model_takes_no_vectors(memory: Memory) -> None:
    created = await archive(memory, "")
    with fails(InvalidArgument, "PASSAGE_INVALID"):
        await put(memory, created.id, draft("a", 1.0))
