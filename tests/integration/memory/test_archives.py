"""Archives: their life, their agents, and passages in all the places where they can be looked for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import archive_service_pb2 as pb
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as passages_pb
from services.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    LociError,
    NotFound,
    Unavailable,
    from_rpc,
)
from services.common.ids import uuid7
from tests.integration.memory.harness import EMBEDDING, Memory, fails, unavailable
from tests.page_requests import paged

HYBRID, VECTOR, TEXT = (
    passage_pb2.SEARCH_MODE_HYBRID,
    passage_pb2.SEARCH_MODE_VECTOR,
    passage_pb2.SEARCH_MODE_TEXT,
)


async def new_archive(memory: Memory, name: str = "Lore", embedding: str = EMBEDDING, **fields: Any) -> Any:
    draft = passage_pb2.Archive(name=name, embedding=embedding, **fields)
    return (await memory.archives.CreateArchive(pb.CreateArchiveRequest(archive=draft))).archive


async def get(memory: Memory, archive_id: str) -> Any:
    return (await memory.archives.GetArchive(pb.GetArchiveRequest(archive_id=archive_id))).archive


async def attach(memory: Memory, agent: str, archive: Any) -> None:
    await memory.archives.AttachArchive(pb.AttachArchiveRequest(agent_id=agent, archive_id=archive.id))


async def detach(memory: Memory, agent: str, archive: Any) -> None:
    await memory.archives.DetachArchive(pb.DetachArchiveRequest(agent_id=agent, archive_id=archive.id))


async def put(memory: Memory, archive: Any, *drafts: str | passages_pb.PassageDraft) -> list[Any]:
    created = [passages_pb.PassageDraft(text=one) if isinstance(one, str) else one for one in drafts]
    request = passages_pb.CreatePassagesRequest(archive_id=archive.id, passages=created)
    return list((await memory.passages.CreatePassages(request)).passages)


async def texts(memory: Memory, **fields: Any) -> list[str]:
    """Of a list."""
    response = await memory.passages.ListPassages(passages_pb.ListPassagesRequest(**paged(**fields)))
    return [passage.text for passage in response.passages]


async def find(memory: Memory, query: str, **fields: Any) -> Any:
    return await memory.passages.SearchPassages(passages_pb.SearchPassagesRequest(query=query, **fields))


async def names(memory: Memory, **fields: Any) -> list[str]:
    response = await memory.archives.ListArchives(pb.ListArchivesRequest(**paged(**fields)))
    return [archive.name for archive in response.archives]


def draft(text: str, *tags: str, day: int = 1) -> passages_pb.PassageDraft:
    created = passages_pb.PassageDraft(text=text, tags=tags)
    created.created_at.FromDatetime(datetime(2021, 1, day, tzinfo=UTC))
    return created


async def test_the_life_of_an_archive(memory: Memory) -> None:
    archive_id = f"archive-{uuid7()}"
    created = await new_archive(memory, id=archive_id, description="d\0", metadata_json='{"k":1}')
    assert (created.id, created.name, created.description, created.metadata_json) == (
        archive_id,
        "Lore",
        "d",
        '{"k":1}',
    )
    assert (created.embedding, created.dimensions, created.passage_count) == (EMBEDDING, 0, 0)
    assert created.created_by_id == created.last_updated_by_id == f"user-{UUID(int=2)}"
    assert await new_archive(memory, id=archive_id, description="d", metadata_json='{"k":1}') == created
    with fails(AlreadyExists, "ARCHIVE_ID_TAKEN"):
        await new_archive(memory, "Another", id=archive_id)
    with fails(NotFound, "MODEL_NOT_FOUND"):
        await new_archive(memory, embedding="nobody/nothing")

    await put(memory, created, "cat")
    second, third = await new_archive(memory, "Second", embedding=""), await new_archive(memory, "Third")
    assert await names(memory) == ["Lore", "Second", "Third"]
    assert await names(memory, page_size=2, descending=True) == ["Third", "Second"]
    assert await names(memory, after=second.id) == ["Third"]
    assert await names(memory, before=third.id, page_size=1) == ["Second"]
    assert await names(memory, name="Second") == ["Second"]
    agent = await memory.agent_with()
    await attach(memory, agent, third)
    assert await names(memory, agent_id=agent) == ["Third"]

    change = pb.UpdateArchiveRequest(archive_id=created.id, archive=passage_pb2.Archive(name="Renamed"))
    change.update_mask.paths.extend(["name", "description"])
    changed = (await memory.archives.UpdateArchive(change)).archive
    assert (changed.name, changed.HasField("description"), changed.metadata_json) == ("Renamed", False, '{"k":1}')
    assert (changed.dimensions, changed.passage_count) == (6, 1)
    assert changed.updated_at.ToDatetime() > created.updated_at.ToDatetime()
    change.update_mask.paths.append("embedding")
    with fails(InvalidArgument, "UPDATE_MASK_INVALID"):
        await memory.archives.UpdateArchive(change)

    await memory.archives.DeleteArchive(pb.DeleteArchiveRequest(archive_id=created.id))
    assert await names(memory) == ["Second", "Third"]
    assert await texts(memory) == []
    for gone in (
        memory.archives.GetArchive(pb.GetArchiveRequest(archive_id=created.id)),
        memory.archives.DeleteArchive(pb.DeleteArchiveRequest(archive_id=created.id)),
        memory.archives.ListArchiveAgents(pb.ListArchiveAgentsRequest(archive_id=created.id)),
        memory.archives.AttachArchive(pb.AttachArchiveRequest(agent_id=agent, archive_id=created.id)),
        put(memory, created, "late"),
        texts(memory, archive_id=created.id),
        find(memory, "cat", archive_id=created.id),
    ):
        with fails(NotFound, "ARCHIVE_NOT_FOUND"):
            await gone
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await names(memory, after=created.id)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": ""}, "ARCHIVE_INVALID"),
        ({"name": " \0"}, "ARCHIVE_INVALID"),
        ({"name": "x" * 1_001}, "ARCHIVE_INVALID"),
        ({"name": "x", "description": "x" * 10_001}, "ARCHIVE_INVALID"),
        ({"name": "x", "metadata_json": "[]"}, "ARCHIVE_INVALID"),
        ({"name": "x", "id": "block-1"}, "INVALID_ID"),
    ],
)
async def test_archives_that_may_not_be(memory: Memory, fields: dict[str, Any], reason: str) -> None:
    with fails(InvalidArgument, reason):
        await memory.archives.CreateArchive(pb.CreateArchiveRequest(archive=passage_pb2.Archive(**fields)))
    assert await names(memory) == []


async def test_agents_share_archives(memory: Memory) -> None:
    """The first that is attached is the default; one made for an agent goes with it, one made by hand stays."""
    ada, bob = await memory.agent_with(), await memory.agent_with()
    shared, extra = await new_archive(memory), await new_archive(memory, "Extra")
    await asyncio.gather(*(attach(memory, ada, one) for one in (shared, extra, shared, extra)))
    await detach(memory, ada, extra)
    await detach(memory, ada, shared)
    for agent in (ada, bob):
        await attach(memory, agent, shared)
        await attach(memory, agent, extra)
    await memory.store(ada, "the cat of ada")
    await memory.store(bob, "the cat of bob")
    assert {hit.passage.text for hit in await memory.search(bob, "cat")} == {"the cat of ada", "the cat of bob"}
    assert (await get(memory, shared.id)).passage_count == 2
    list_page = await memory.archives.ListArchiveAgents(pb.ListArchiveAgentsRequest(archive_id=shared.id))
    assert list(list_page.agent_ids) == [ada, bob]

    await detach(memory, ada, shared)
    with fails(NotFound, "ARCHIVE_NOT_ATTACHED"):
        await detach(memory, ada, shared)
    await memory.store(ada, "a secret cat")
    [own] = {passage.archive_id for passage in await memory.store(ada, "another")}
    assert own not in (shared.id, extra.id)
    assert await texts(memory, agent_id=ada) == ["a secret cat", "another"]
    for agent in (ada, bob):
        await memory.agents.PurgeAgent(agent_pb.PurgeAgentRequest(agent_id=agent))
    assert sorted(await names(memory)) == ["Extra", "Lore"]
    assert await texts(memory) == ["the cat of ada", "the cat of bob"]


async def test_places(memory: Memory) -> None:
    """An agent, an archive, a folder, the tenant: in lists, searches and single reads."""
    agent, stranger = await memory.agent_with(), await memory.agent_with()
    first, second = await new_archive(memory), await new_archive(memory, "Plain", embedding="")
    other = await new_archive(memory, "Other model", embedding="test/others")
    for archive in (first, second):
        await attach(memory, agent, archive)
    [cat] = await put(memory, first, draft("one cat", "a", "b", day=1))
    await put(memory, second, draft("two cat", "b", day=2))
    await put(memory, other, draft("three cat", "c", day=3))
    folder, file_id = await folder_with(memory, "a piece of cat")

    everything = ["one cat", "two cat", "three cat"]
    for place, expected in (
        ({"agent_id": agent}, everything[:2]),
        ({"agent_id": stranger}, []),
        ({"archive_id": second.id}, ["two cat"]),
        ({"folder_id": folder}, ["a piece of cat"]),
        ({}, everything),
    ):
        assert await texts(memory, **place) == expected
        for mode in (HYBRID, TEXT):
            hits = (await find(memory, "cat", mode=mode, top_k=10, **place)).hits
            assert sorted(hit.passage.text for hit in hits) == sorted(expected)
    assert {hit.passage.text for hit in (await find(memory, "feline", mode=VECTOR)).hits} == {"one cat", "three cat"}

    assert await texts(memory, tags=["b"], page_size=1, descending=True) == ["two cat"]
    assert await texts(memory, tags=["a", "c"]) == ["one cat", "three cat"]
    assert await texts(memory, tags=["a", "b"], match_all_tags=True) == ["one cat"]
    bounds = {"start_time": draft("", day=2).created_at, "end_time": draft("", day=2).created_at}
    assert await texts(memory, agent_id=agent, **bounds) == ["two cat"]
    assert await texts(memory, after=cat.id, search="CAT") == ["two cat", "three cat"]
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await texts(memory, archive_id=second.id, after=cat.id)

    [piece] = (await memory.passages.ListPassages(passages_pb.ListPassagesRequest(folder_id=folder))).passages
    assert (piece.archive_id, piece.file.folder_id, piece.file.file_id) == ("", folder, file_id)
    assert (piece.file.file_name, piece.file.place, piece.file.first_line, piece.file.last_line) == (
        "docs/a.md",
        0,
        1,
        9,
    )
    for place, known in (
        ({"agent_id": agent}, True),
        ({"archive_id": first.id}, True),
        ({}, True),
        ({"agent_id": stranger}, False),
        ({"archive_id": second.id}, False),
        ({"folder_id": folder}, False),
    ):
        request = passages_pb.GetPassageRequest(passage_id=cat.id, **place)
        if known:
            assert (await memory.passages.GetPassage(request)).passage == cat
        else:
            with fails(NotFound, "PASSAGE_NOT_FOUND"):
                await memory.passages.GetPassage(request)
    with memory.of(uuid4()), fails(NotFound, "PASSAGE_NOT_FOUND"):
        await memory.passages.GetPassage(passages_pb.GetPassageRequest(passage_id=cat.id))
    with fails(NotFound, "PASSAGE_NOT_FOUND"):
        await memory.passages.DeletePassage(passages_pb.DeletePassageRequest(passage_id=piece.id))
    await memory.passages.DeletePassage(passages_pb.DeletePassageRequest(passage_id=cat.id))
    assert (await get(memory, first.id)).passage_count == 0


async def folder_with(memory: Memory, text: str) -> tuple[str, str]:
    """A folder whose file has one piece; written as rows, with the words that the service would give it."""
    folder, file = uuid7(), uuid7()
    organization, user = memory.caller.organization_id, memory.caller.user_id
    for statement in (
        "INSERT INTO memory.archives (organization_id, id, name, kind, passage_count, word_count, created_by_id,"
        " last_updated_by_id) VALUES ($1, $2, 'docs', 2, 1, 4, $3, $3)",
        "INSERT INTO memory.folders (organization_id, id, name, created_by_id, last_updated_by_id)"
        " VALUES ($1, $2, 'docs', $3, $3)",
    ):
        await memory.pool.execute(statement, organization, folder, user)
    await memory.pool.execute(
        "INSERT INTO memory.files (organization_id, id, folder_id, name, original_name, media_type, size, sha256,"
        " created_by_id) VALUES ($1, $2, $3, 'a.md', 'a.md', 'text/markdown', 1, '', $4)",
        organization,
        file,
        folder,
        user,
    )
    await memory.pool.execute(
        "INSERT INTO memory.passages (organization_id, archive_id, id, text, words, word_count, created_by_id,"
        " last_updated_by_id, file_id, place, first_line, last_line) VALUES ($1, $2, $3, $4,"
        " to_tsvector('memory.words', $4) || array_to_tsvector(ARRAY[$5]), 4, $6, $6, $7, 0, 1, 9)",
        organization,
        folder,
        uuid7(),
        text,
        f"@{folder.hex}",
        user,
        file,
    )
    return f"source-{folder}", f"file-{file}"


async def test_a_passage_changes(memory: Memory) -> None:
    archive = await new_archive(memory)
    [stored, _] = await put(memory, archive, draft("a kitten sleeps", "x", "y"), "some tea")
    request = passages_pb.UpdatePassageRequest(
        passage_id=stored.id, passage=passages_pb.PassageDraft(text="the old dog barks loudly", tags=["y", "z"])
    )
    request.update_mask.paths.extend(["text", "tags"])
    changed = (await memory.passages.UpdatePassage(request)).passage
    assert (changed.text, list(changed.tags), changed.embedding) == ("the old dog barks loudly", ["y", "z"], EMBEDDING)
    assert changed.created_at == stored.created_at
    assert changed.updated_at.ToDatetime() > stored.updated_at.ToDatetime()
    assert [hit.passage.text for hit in (await find(memory, "puppy", mode=VECTOR, top_k=1)).hits] == [changed.text]
    assert [hit.passage.text for hit in (await find(memory, "barks", mode=TEXT)).hits] == [changed.text]
    assert (await find(memory, "kitten", mode=TEXT)).hits == []
    assert await texts(memory, tags=["x"]) == []
    assert await texts(memory, tags=["z"]) == [changed.text]
    counts = "SELECT passage_count, word_count FROM memory.archives WHERE organization_id = $1"
    assert tuple(await memory.pool.fetchrow(counts, memory.caller.organization_id)) == (2, 7)

    # Vectors of other models were made of the old text.
    other = await memory.stores.passages.embedding_model("test/others", 6)
    await memory.pool.execute(
        "INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)"
        " SELECT organization_id, archive_id, passage_id, $2, embedding FROM memory.passage_vectors"
        " WHERE organization_id = $1",
        memory.caller.organization_id,
        other.id,
    )
    memory.models.failure = unavailable()
    request.passage.text = "python code"
    with fails(Unavailable, "LLM_UNAVAILABLE"):
        await memory.passages.UpdatePassage(request)
    assert (await texts(memory))[0] == changed.text
    plain = passages_pb.UpdatePassageRequest(
        passage_id=stored.id, archive_id=archive.id, passage=passages_pb.PassageDraft(metadata_json='{"k":2}')
    )
    plain.passage.created_at.FromDatetime(datetime(2020, 1, 1, tzinfo=UTC))
    plain.update_mask.paths.extend(["metadata_json", "created_at"])
    moved = (await memory.passages.UpdatePassage(plain)).passage
    assert (moved.metadata_json, moved.created_at, moved.text) == ('{"k":2}', plain.passage.created_at, changed.text)
    memory.models.failure = None
    await memory.passages.UpdatePassage(request)
    vectors = "SELECT count(*) FROM memory.passage_vectors WHERE organization_id = $1 AND model_id = $2"
    assert await memory.pool.fetchval(vectors, memory.caller.organization_id, other.id) == 1

    wrong: list[tuple[dict[str, Any], list[str], type[LociError], str]] = [
        ({"text": " "}, ["text"], InvalidArgument, "PASSAGE_INVALID"),
        ({"tags": [""]}, ["tags"], InvalidArgument, "PASSAGE_INVALID"),
        ({"metadata_json": "7"}, ["metadata_json"], InvalidArgument, "PASSAGE_INVALID"),
        ({}, ["created_at"], InvalidArgument, "PASSAGE_INVALID"),
        ({}, ["archive_id"], InvalidArgument, "UPDATE_MASK_INVALID"),
    ]
    for fields, paths, kind, reason in wrong:
        bad = passages_pb.UpdatePassageRequest(passage_id=stored.id, passage=passages_pb.PassageDraft(**fields))
        bad.update_mask.paths.extend(paths)
        with fails(kind, reason):
            await memory.passages.UpdatePassage(bad)
    plain.archive_id = f"archive-{uuid4()}"
    with fails(NotFound, "PASSAGE_NOT_FOUND"):
        await memory.passages.UpdatePassage(plain)


async def test_search_modes(memory: Memory) -> None:
    archive, plain = await new_archive(memory), await new_archive(memory, "Plain", embedding="")
    await put(memory, archive, "A cat is a cat.", "The kitten sleeps.", "Nothing of it.")
    await put(memory, plain, "A cat without a vector.")
    [best, second, *_] = (await find(memory, "cat", mode=VECTOR)).hits
    assert [one.passage.text for one in (best, second)] == ["The kitten sleeps.", "A cat is a cat."]
    assert best.score == best.vector_score > second.score > 0.9
    assert not best.HasField("text_score")
    hits = (await find(memory, "cat", mode=TEXT)).hits
    assert len(hits) == 2
    assert all(hit.score == hit.text_score and not hit.HasField("vector_score") for hit in hits)
    assert (await find(memory, "cat", mode=VECTOR, archive_id=plain.id)).hits == []
    memory.models.failure = unavailable()
    with fails(Unavailable, "LLM_UNAVAILABLE"):
        await find(memory, "cat", mode=VECTOR)
    answer = await find(memory, "cat", mode=HYBRID)
    assert [one.HasField("text_score") for one in answer.hits] == [True, True, False, False], "two, and neighbours"
    assert list(answer.without_vectors) == [EMBEDDING]
    assert list((await find(memory, "cat", mode=TEXT)).without_vectors) == []
    # Cosines of two models cannot be compared: ranks are.
    memory.models.failure = None
    other = await new_archive(memory, "Other", embedding="test/others")
    await put(memory, other, "Another cat.")
    assert {hit.score for hit in (await find(memory, "cat", mode=VECTOR, top_k=2)).hits} == {1 / 61}


async def test_the_first_passages_decide_how_long_vectors_are(memory: Memory) -> None:
    archive = await new_archive(memory)
    await asyncio.gather(*(put(memory, archive, f"cat {number}") for number in range(4)))
    found = await get(memory, archive.id)
    assert (found.dimensions, found.passage_count, found.embedding) == (6, 4, EMBEDDING)
    memory.models.dimensions = 3
    with fails(FailedPrecondition, "EMBEDDING_INVALID") as caught:
        await put(memory, archive, "dog")
    assert "began with 6" in caught[0].message
    # Two first insertions of an agent at the same time make one archive.
    memory.models.dimensions = 6
    agent = await memory.agent_with()
    await asyncio.gather(*(memory.store(agent, f"tea {number}") for number in range(4)))
    assert len(await names(memory, agent_id=agent)) == 1
    assert len(await texts(memory, agent_id=agent)) == 4


async def test_a_batch_is_embedded_in_parts_and_stored_as_a_whole(memory: Memory) -> None:
    archive = await new_archive(memory)
    drafts = [f"cat number {number}" for number in range(600)] + ["unspeakable"]
    memory.models.refused = "unspeakable"
    with fails(InvalidArgument, "LLM_BAD_REQUEST"):
        await put(memory, archive, *drafts)
    assert (await get(memory, archive.id)).passage_count == 0
    memory.models.texts.clear()
    stored = await put(memory, archive, *drafts[:-1], "x" * 150_000, "y" * 150_000)
    assert [one.text for one in stored[:600]] == drafts[:-1]
    assert sorted(memory.models.texts) == [90, 256, 256]
    assert (await get(memory, archive.id)).passage_count == 602


async def test_a_large_archive_is_gone_at_once_and_erased_in_portions(memory: Memory) -> None:
    archive, agent = await new_archive(memory, embedding=""), await memory.agent_with()
    await attach(memory, agent, archive)
    await put(memory, archive, *(f"cat {number}" for number in range(1_000)))
    await put(memory, archive, "one more cat")
    organization = memory.caller.organization_id
    await memory.archives.DeleteArchive(pb.DeleteArchiveRequest(archive_id=archive.id))
    rows = "SELECT count(*) FROM memory.passages WHERE organization_id = $1"
    assert await memory.pool.fetchval(rows, organization) == 1_001
    for place in ({"agent_id": agent}, {}):
        assert await texts(memory, **place) == []
        assert (await find(memory, "cat", **place)).hits == []
    with fails(NotFound, "ARCHIVE_NOT_FOUND"):
        await put(memory, archive, "too late")
    worker = memory.worker()
    while await memory.pool.fetchval(rows, organization):
        assert await worker.run_one()
    archives = "SELECT count(*) FROM memory.archives WHERE organization_id = $1"
    assert await memory.pool.fetchval(archives, organization) == 0


async def test_requests_that_name_no_place_or_too_many(memory: Memory) -> None:
    agent, archive = await memory.agent_with(), await new_archive(memory)
    both = {"agent_id": agent, "archive_id": archive.id}
    for call, reason in (
        (texts(memory, **both), "QUERY_INVALID"),
        (find(memory, "x", **both), "QUERY_INVALID"),
        (find(memory, "x", mode=9), "QUERY_INVALID"),
        (find(memory, "x", tags=[""]), "QUERY_INVALID"),
        (texts(memory, tags=["t" * 501]), "QUERY_INVALID"),
        (texts(memory, page_size=1_001), "PAGE_SIZE_INVALID"),
        (texts(memory, page_token="x"), "PAGE_TOKEN_INVALID"),
        (texts(memory, archive_id="agent-1"), "INVALID_ID"),
        (memory.passages.GetPassage(passages_pb.GetPassageRequest(passage_id="x")), "INVALID_ID"),
        (memory.passages.CreatePassages(passages_pb.CreatePassagesRequest()), "PASSAGE_INVALID"),
        (memory.passages.CreatePassages(passages_pb.CreatePassagesRequest(**both)), "PASSAGE_INVALID"),
    ):
        with fails(InvalidArgument, reason):
            await call
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await texts(memory, folder_id=f"source-{uuid4()}")


async def test_counts_hold_while_many_write(memory: Memory) -> None:
    """Insertions, changes and deletions side by side: nobody waits for ever, and what ranking knows stays true."""
    archive = await new_archive(memory)
    stored = await put(memory, archive, *(f"tea number {number}" for number in range(20)))

    async def change(passage: Any, text: str) -> None:
        request = passages_pb.UpdatePassageRequest(passage_id=passage.id, passage=passages_pb.PassageDraft(text=text))
        request.update_mask.paths.append("text")
        await memory.passages.UpdatePassage(request)

    await asyncio.gather(
        *(change(passage, "coffee " * (1 + number)) for number, passage in enumerate(stored[:10])),
        *(change(passage, "a short text") for passage in stored[:10]),
        *(put(memory, archive, f"cat {number}", "dog") for number in range(10)),
        *(memory.passages.DeletePassage(passages_pb.DeletePassageRequest(passage_id=one.id)) for one in stored[10:]),
    )
    counts = """
        SELECT a.passage_count, a.word_count,
            (SELECT count(*) FROM memory.passage_vectors v WHERE v.organization_id = $1), count(*), sum(p.word_count)
        FROM memory.archives a JOIN memory.passages p ON p.organization_id = a.organization_id AND p.archive_id = a.id
        WHERE a.organization_id = $1 GROUP BY a.passage_count, a.word_count
    """
    [row] = await memory.pool.fetch(counts, memory.caller.organization_id)
    assert (row[0], row[2], row[3]) == (30, 30, 30)
    assert row[1] == row[4]
    late = [put(memory, archive, f"late {number}") for number in range(5)]
    gone = [memory.archives.DeleteArchive(pb.DeleteArchiveRequest(archive_id=archive.id))]
    outcomes = await asyncio.gather(*late, change(stored[0], "later"), *gone, return_exceptions=True)
    refused = [from_rpc(one) for one in outcomes if isinstance(one, grpc.aio.AioRpcError)]
    assert {error.reason for error in refused} <= {"ARCHIVE_NOT_FOUND", "PASSAGE_NOT_FOUND"}
    rows = "SELECT count(*) FROM memory.passages WHERE organization_id = $1"
    assert await memory.pool.fetchval(rows, memory.caller.organization_id) == 0
