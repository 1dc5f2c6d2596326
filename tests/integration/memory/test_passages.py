"""Archival memory by the API: what is stored, lists, and hybrid search with its scores."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as pb
from services.common.core.languages import LANGUAGES
from services.common.core.neighbours import MOST_LIFTED
from services.common.errors import FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted, Unavailable
from tests.integration.memory.harness import EMBEDDING, Memory, fails, unavailable
from tests.page_requests import paged

TEXT = passage_pb2.SEARCH_MODE_TEXT


async def list_page(memory: Memory, agent_id: str, **fields: Any) -> list[str]:
    """Texts of all pages."""
    texts: list[str] = []
    request = pb.ListPassagesRequest(**paged(agent_id=agent_id, **fields))
    while True:
        response = await memory.passages.ListPassages(request)
        texts += [passage.text for passage in response.passages]
        if not response.next_page_token:
            return texts
        request.page.page_token = response.next_page_token


def create(agent_id: str, *drafts: pb.PassageDraft, embedding: str = EMBEDDING) -> pb.CreatePassagesRequest:
    return pb.CreatePassagesRequest(agent_id=agent_id, passages=drafts, embedding=embedding)


def texts(hits: list[Any]) -> list[str]:
    return [hit.passage.text for hit in hits]


async def test_passages_come_back_as_stored_and_by_their_id_once(memory: Memory) -> None:
    agent, passage_id = await memory.agent_with(), f"passage-{uuid4()}"
    draft = pb.PassageDraft(id=passage_id, text="a\0b", tags=["y", "x", "y"], metadata_json='{"k": 1}')
    draft.created_at.FromDatetime(datetime(2020, 5, 1, tzinfo=UTC))
    request = create(agent, draft, pb.PassageDraft(text="second"))
    first, second = (await memory.passages.CreatePassages(request)).passages
    assert (first.id, first.text, list(first.tags)) == (passage_id, "ab", ["x", "y"])
    assert (first.metadata_json, first.embedding) == ('{"k":1}', EMBEDDING)
    assert first.created_at == draft.created_at
    assert second.created_at.ToDatetime(UTC) > datetime.now(UTC) - timedelta(minutes=1)
    again = await memory.passages.CreatePassages(create(agent, draft))
    assert list(again.passages) == [first]
    assert await list_page(memory, agent) == ["ab", "second"]
    memory_now = await memory.agents.GetAgentMemory(agent_pb.GetAgentMemoryRequest(agent_id=agent))
    assert memory_now.memory.passage_count == 2


@pytest.mark.parametrize(
    ("drafts", "part"),
    [
        ([], "1 to 1000 passages"),
        ([pb.PassageDraft(text="x")] * 1_001, "1 to 1000 passages"),
        ([pb.PassageDraft(text="")], "1 to 1000000 characters"),
        ([pb.PassageDraft(text="\0")], "1 to 1000000 characters"),
        ([pb.PassageDraft(text="x" * 1_000_001)], "1 to 1000000 characters"),
        ([pb.PassageDraft(text="x", tags=["t" * 501])], "a tag has 1 to 500"),
        ([pb.PassageDraft(text="x", metadata_json="7")], "must be a JSON object"),
        ([pb.PassageDraft(id=f"passage-{uuid4()}", text="x")] * 2, "the same id"),
    ],
)
async def test_what_may_not_be_stored(memory: Memory, drafts: list[Any], part: str) -> None:
    agent = await memory.agent_with()
    with fails(InvalidArgument, "PASSAGE_INVALID") as caught:
        await memory.passages.CreatePassages(
            create(agent, pb.PassageDraft(text="good"), *drafts) if drafts else create(agent)
        )
    assert part in caught[0].message
    assert await list_page(memory, agent) == []


async def test_the_longest_texts_of_any_script_are_stored_and_found(memory: Memory) -> None:
    agent = await memory.agent_with()
    distinct = " ".join(f"w{number:x}" for number in range(140_000))[:1_000_000]
    for text in (distinct, "\N{GRINNING FACE}" * 1_000_000, "漢" * 1_000_000, "a" * 1_000_000):
        await memory.store(agent, text, embedding="")
    assert len(await memory.search(agent, "w7f", mode=TEXT)) == 1
    assert len(await memory.search(agent, "漢漢", mode=TEXT)) == 1


async def test_nothing_is_stored_when_the_embedding_fails(memory: Memory) -> None:
    agent = await memory.agent_with()
    memory.models.failure = unavailable()
    with fails(Unavailable, "LLM_UNAVAILABLE"):
        await memory.store(agent, "x")
    memory.models.failure = None
    await memory.store(agent, "x")
    memory.models.dimensions = 3
    with fails(FailedPrecondition, "EMBEDDING_INVALID") as caught:
        await memory.store(agent, "y")
    assert "began with 6" in caught[0].message
    assert await list_page(memory, agent) == ["x"]
    assert texts(await memory.search(agent, "x")) == ["x"]


async def test_an_archive_keeps_the_model_it_began_with(memory: Memory) -> None:
    agent, plain = await memory.agent_with(), await memory.agent_with()
    await memory.store(agent, "x")
    [stored] = await memory.store(agent, "y", embedding="other/model")
    assert stored.embedding == EMBEDDING
    await memory.store(plain, "x", embedding="")
    [stored] = await memory.store(plain, "y")
    assert stored.embedding == ""


async def test_lists_search_and_page_both_ways(memory: Memory) -> None:
    agent = await memory.agent_with()
    stored = []
    for number in range(5):
        stored += await memory.store(agent, f"Text {number} of 100%")
    every = [passage.text for passage in stored]
    assert await list_page(memory, agent, page_size=2) == every
    assert await list_page(memory, agent, page_size=2, descending=True) == every[::-1]
    assert await list_page(memory, agent, after=stored[1].id) == every[2:]
    request = pb.ListPassagesRequest(agent_id=agent, page=PageRequest(before=stored[3].id, page_size=2))
    response = await memory.passages.ListPassages(request)
    assert [passage.text for passage in response.passages] == every[1:3]
    assert await list_page(memory, agent, search="TEXT 3") == [every[3]]
    assert await list_page(memory, agent, search="_") == []
    assert list(response.passages) == [stored[1], stored[2]]
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await list_page(memory, agent, after=f"passage-{uuid4()}")


async def test_deleting_a_passage_erases_it_everywhere(memory: Memory) -> None:
    agent, other = await memory.agent_with(), await memory.agent_with()
    [stored] = await memory.store(agent, "cat")
    request = pb.DeletePassageRequest(agent_id=other, passage_id=stored.id)
    with fails(NotFound, "PASSAGE_NOT_FOUND"):
        await memory.passages.DeletePassage(request)
    request.agent_id = agent
    await memory.passages.DeletePassage(request)
    with fails(NotFound, "PASSAGE_NOT_FOUND"):
        await memory.passages.DeletePassage(request)
    assert await memory.search(agent, "cat") == []
    organization = memory.caller.organization_id
    for table in ("passages", "passage_vectors", "passage_tags"):
        query = f"SELECT count(*) FROM memory.{table} WHERE organization_id = $1"
        assert await memory.pool.fetchval(query, organization) == 0
    query = "SELECT passage_count, word_count FROM memory.archives WHERE organization_id = $1"
    assert tuple(await memory.pool.fetchrow(query, organization)) == (0, 0)


async def test_words_and_vectors_are_fused(memory: Memory) -> None:
    agent = await memory.agent_with()
    await memory.store(
        agent,
        "The kitten sleeps.",
        "A cat is a cat.",
        "The dog barks.",
        "Invoice 4711 for an automobile.",
        "Nothing of interest.",
    )
    hits = await memory.search(agent, "cat", top_k=2)
    assert texts(hits) == ["A cat is a cat.", "The kitten sleeps."]
    # The second has a part of the first, which stands next to it, and stays below.
    assert hits[1].score == pytest.approx(MOST_LIFTED * hits[0].score)
    assert 0.5 < hits[0].score <= 1
    assert hits[1].vector_score > hits[0].vector_score > 0.9
    assert hits[0].HasField("text_score")
    assert not hits[1].HasField("text_score")
    assert "Invoice 4711 for an automobile." in texts(await memory.search(agent, "invoice 4711", top_k=2))
    memory.models.failure = unavailable()
    [hit] = await memory.search(agent, "automobiles", top_k=1)
    assert (hit.passage.text, hit.HasField("vector_score")) == ("Invoice 4711 for an automobile.", False)


async def test_several_archives_with_several_models_answer_together(memory: Memory) -> None:
    """One vector ranking per model; none is compared with another by its similarity."""
    agent, other = await memory.agent_with(), await memory.agent_with()
    await memory.store(agent, "The kitten sleeps.", "The car waits.")
    await memory.store(other, "A feline friend.", "Some tea.", embedding="test/others")
    attach = """
        INSERT INTO memory.agent_archives (organization_id, agent_id, archive_id)
        SELECT organization_id, $2, archive_id FROM memory.agent_archives
        WHERE organization_id = $1 AND agent_id = $3
    """
    ids = [agent.removeprefix("agent-"), other.removeprefix("agent-")]
    await memory.pool.execute(attach, memory.caller.organization_id, *ids)
    assert set(texts(await memory.search(agent, "cat", top_k=2))) == {"The kitten sleeps.", "A feline friend."}
    assert await list_page(memory, other) == ["A feline friend.", "Some tea."]
    assert len(await list_page(memory, agent)) == 4


async def test_text_is_ranked_by_bm25(memory: Memory) -> None:
    """Against the formula, computed here: frequencies of terms and documents, and lengths."""
    agent = await memory.agent_with()
    corpus = [
        "red fox red fox red fish",
        "blue fox",
        "red " * 40,
        "green bird sings a green song of the long green hill by the red river",
        "blue blue fish fish",
        "the a of",
    ]
    await memory.store(agent, *corpus, embedding="")
    documents = {text: Counter(text.split()) for text in corpus}
    average = sum(documents[text].total() for text in corpus) / len(corpus)

    def score(text: str, terms: list[str]) -> float:
        total = 0.0
        for term in terms:
            known = sum(term in words for words in documents.values())
            frequency = min(documents[text][term], 32)
            length = 1.2 * (0.6 + 0.4 * documents[text].total() / average)
            weight = math.log(1 + (len(corpus) - known + 0.5) / (known + 0.5))
            total += weight * frequency * 2.2 / (frequency + length)
        return total

    for query in ("red", "red fox", "blue fish green", "the green"):
        terms = [word for word in query.split() if word != "the"]
        hits = await memory.search(agent, query, top_k=10, mode=TEXT)
        expected = sorted(((score(text, terms), text) for text in corpus if score(text, terms)), reverse=True)
        assert texts(hits) == [text for _, text in expected]
        assert [hit.text_score for hit in hits] == pytest.approx([value for value, _ in expected])
    assert "the a of" in texts(await memory.search(agent, "of the", top_k=10))
    assert await memory.search(agent, "?!", top_k=10) == []


async def test_words_are_found_in_any_language(memory: Memory) -> None:
    agent = await memory.agent_with()
    await memory.store(
        agent,
        "Der Fluß fließt durch Zürich",
        "Привет, мир",
        "東京に行きました",
        "हिन्दी भाषा",
        "The cats were running",
        embedding="",
    )
    for query, text in (
        ("fluss zurich", "Der Fluß"),
        ("ПРИВЕТ", "Привет"),
        ("東京", "東京"),
        ("हिन्दी", "हिन्दी"),
        ("a cat runs", "The cats"),
    ):
        [found] = texts(await memory.search(agent, query, mode=TEXT))
        assert found.startswith(text)


async def test_words_are_stemmed_in_their_own_language(memory: Memory) -> None:
    """In one archive, beside English; none of these is found by an English stem."""
    agent = await memory.agent_with()
    await memory.store(
        agent,
        "Ich habe gestern zwei Häuser besichtigt.",
        "Les enfants jouaient dans le jardin.",
        "Ellos cantaron una canción muy vieja.",
        "Мы купили две книги.",
        "Gli amici parlavano della partita.",
        "The children were singing.",
        "昨日、家を見ました。",
        embedding="",
    )
    for query, text in (
        ("Wo ist das Haus?", "Ich habe"),
        ("Qui joue avec les autres ?", "Les enfants"),
        ("¿Quién ha cantado las canciones?", "Ellos"),
        ("Где книга?", "Мы купили"),
        ("Con chi parlare?", "Gli amici"),
        ("Which child sings?", "The children"),
        ("家", "昨日"),
    ):
        best, *_ = texts(await memory.search(agent, query, mode=TEXT))
        assert best.startswith(text), query
    # A new text has its words in its own language, too.
    [passage] = await memory.store(agent, "Nothing yet.", embedding="")
    request = pb.UpdatePassageRequest(agent_id=agent, passage_id=passage.id)
    request.passage.text = "Wir haben die Bäume gepflanzt."
    request.update_mask.paths.append("text")
    await memory.passages.UpdatePassage(request)
    assert texts(await memory.search(agent, "Wer hat den Baum gepflanzt?", mode=TEXT))[0] == request.passage.text


async def test_words_of_tags_count_as_one_more_of_the_text(memory: Memory) -> None:
    agent = await memory.agent_with()
    drafts = [
        pb.PassageDraft(text="We crossed the ice.", tags=["polar trips", "Nansen"]),
        pb.PassageDraft(text="A polar bear came."),
        pb.PassageDraft(text="The polar night.", tags=["polar"]),
    ]
    request = pb.CreatePassagesRequest(agent_id=agent, passages=drafts)
    ice, _, _ = (await memory.passages.CreatePassages(request)).passages

    async def found(query: str) -> list[str]:
        return texts(await memory.search(agent, query, mode=TEXT))

    polar = await found("polar")
    assert polar[0] == "The polar night."
    assert sorted(polar) == sorted(draft.text for draft in drafts)
    assert await found("Which trip did Nansen make?") == ["We crossed the ice."]
    # Tags go out of the words as they go out of the passage, and a new text keeps them.
    change = pb.UpdatePassageRequest(agent_id=agent, passage_id=ice.id)
    change.passage.tags.append("Amundsen")
    change.update_mask.paths.append("tags")
    await memory.passages.UpdatePassage(change)
    assert await found("Nansen") == []
    assert await found("Amundsen") == await found("crossing") == ["We crossed the ice."]
    change = pb.UpdatePassageRequest(agent_id=agent, passage_id=ice.id)
    change.passage.text = "We turned back."
    change.update_mask.paths.append("text")
    await memory.passages.UpdatePassage(change)
    assert await found("Amundsen") == await found("turn") == ["We turned back."]
    assert await found("crossing") == []


async def test_postgres_has_a_stemmer_for_each_language(memory: Memory) -> None:
    rows = await memory.pool.fetch("SELECT cfgname FROM pg_ts_config WHERE cfgnamespace = 'pg_catalog'::regnamespace")
    assert {row["cfgname"] for row in rows} >= LANGUAGES


async def test_filters_of_the_api(memory: Memory) -> None:
    agent = await memory.agent_with()
    drafts = []
    for number in range(6):
        draft = pb.PassageDraft(text=f"cat {number}", tags=["even" if number % 2 == 0 else "odd", f"n{number}"])
        draft.created_at.FromDatetime(datetime(2021, 1, 1 + number, tzinfo=UTC))
        drafts.append(draft)
    await memory.passages.CreatePassages(create(agent, *drafts))

    async def found(**fields: Any) -> set[int]:
        hits = await memory.search(agent, "cat", top_k=10, **fields)
        return {int(text.split()[1]) for text in texts(hits)}

    assert await found() == set(range(6))
    assert await found(tags=["even"]) == {0, 2, 4}
    assert await found(tags=["n1", "n2", "none"]) == {1, 2}
    assert await found(tags=["even", "n2"], match_all_tags=True) == {2}
    assert await found(tags=["n1", "n2"], match_all_tags=True) == set()
    bounds = {"start_time": drafts[2].created_at, "end_time": drafts[4].created_at}
    assert await found(**bounds) == {2, 3, 4}
    assert await found(**bounds, tags=["odd"]) == {3}
    for wrong in ({"query": ""}, {"query": "x" * 10_001}, {"query": "x", "top_k": 1_001}):
        with fails(InvalidArgument, "QUERY_INVALID"):
            await memory.passages.SearchPassages(pb.SearchPassagesRequest(agent_id=agent, **wrong))


async def test_more_text_than_an_answer_holds_stays_in_the_database(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    await memory.store(agent, *(f"tea {number}" for number in range(10)))
    await memory.pool.execute(
        "UPDATE memory.passages SET text = repeat('tea ', 1_000_000) WHERE organization_id = $1",
        memory.caller.organization_id,
    )
    request = pb.ListPassagesRequest(agent_id=agent, page=PageRequest(page_size=10))
    with fails(ResourceExhausted, "RESOURCE_EXHAUSTED") as refused:
        await memory.passages.ListPassages(request)
    assert "ask for fewer" in refused[0].message
    with fails(ResourceExhausted, "RESOURCE_EXHAUSTED"):
        await memory.search(agent, "tea", top_k=10)
    answer = await memory.apply(agent, "archival_memory_search", query="tea", top_k=10)
    assert (answer.is_error, "ask for fewer" in answer.tool_return) == (True, True)
    request.page.page_size = 2
    assert len((await memory.passages.ListPassages(request)).passages) == 2
    assert len(await memory.search(agent, "tea", top_k=2)) == 2


_VECTORS = "SELECT count(*), sum(pg_column_size(embedding)) FROM memory.passage_vectors WHERE organization_id = $1"


async def test_how_much_room_vectors_take(memory: Memory) -> None:
    agent = await memory.agent_with()

    async def storage() -> pb.GetVectorStorageResponse:
        return await memory.passages.GetVectorStorage(pb.GetVectorStorageRequest())

    assert ((await storage()).vectors, (await storage()).bytes) == (0, 0)
    await memory.passages.CreatePassages(create(agent, *(pb.PassageDraft(text=text) for text in "abc")))
    stored = await storage()
    [row] = await memory.pool.fetch(
        _VECTORS,
        memory.caller.organization_id,
    )
    assert stored.vectors == row[0] == 3
    assert abs(stored.bytes - row[1]) <= 4 * stored.vectors
