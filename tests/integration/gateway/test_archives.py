"""Archives and passages over REST: what the SDK reads, and what is asked of the memory service."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from letta_client import NotFoundError

from loci.agent.v1 import agent_service_pb2
from loci.common.v1.page_pb2 import ORDER_DESCENDING
from loci.memory.v1 import archive_service_pb2, passage_pb2, passage_service_pb2
from services.common import errors
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend

ARCHIVE_ID = "archive-00000000-0000-4000-8000-00000000000a"
PASSAGE_ID = "passage-00000000-0000-4000-8000-00000000000b"
CONVERSATION_ID = "conv-00000000-0000-4000-8000-00000000000d"
USER_ID = "user-00000000-0000-4000-8000-00000000000c"
EARLY = "0001-01-01T00:00:00+14:00"
ARCHIVE = passage_pb2.Archive(
    id=ARCHIVE_ID,
    name="Lore",
    description="what we know",
    embedding="old/model",
    dimensions=384,
    metadata_json='{"k":1}',
    created_at=samples.NOON,
    updated_at=samples.NOON,
    created_by_id=USER_ID,
    last_updated_by_id=USER_ID,
    passage_count=2,
)
PASSAGE = passage_pb2.Passage(
    id=PASSAGE_ID,
    archive_id=ARCHIVE_ID,
    text="Haskell",
    tags=["x"],
    created_at=samples.NOON,
    updated_at=samples.NOON,
    embedding="loci/hash",
    last_updated_by_id=USER_ID,
)
PIECE = passage_pb2.Passage(
    text="a line",
    created_at=Timestamp(seconds=253_402_300_799),
    file=passage_pb2.FilePiece(
        folder_id="source-1", file_id="file-1", file_name="docs/a.md", first_line=1, last_line=9
    ),
)


@pytest.fixture(autouse=True)
def answers(backend: Backend) -> None:
    """Every method that is asked here has something to say."""
    archives, passages = archive_service_pb2, passage_service_pb2
    backend.on("CreateArchive", lambda _: archives.CreateArchiveResponse(archive=ARCHIVE))
    backend.on("GetArchive", lambda _: archives.GetArchiveResponse(archive=ARCHIVE))
    backend.on("ListArchives", lambda _: archives.ListArchivesResponse(archives=[ARCHIVE]))
    backend.on("UpdateArchive", lambda _: archives.UpdateArchiveResponse(archive=ARCHIVE))
    backend.on("DeleteArchive", lambda _: archives.DeleteArchiveResponse())
    backend.on("AttachArchive", lambda _: archives.AttachArchiveResponse())
    backend.on("DetachArchive", lambda _: archives.DetachArchiveResponse())
    backend.on("ListArchiveAgents", lambda _: archives.ListArchiveAgentsResponse(agent_ids=[AGENT_ID]))
    backend.on("CreatePassages", lambda _: passages.CreatePassagesResponse(passages=[PASSAGE]))
    backend.on("ListPassages", lambda _: passages.ListPassagesResponse(passages=[PASSAGE]))
    backend.on("UpdatePassage", lambda _: passages.UpdatePassageResponse(passage=PASSAGE))
    backend.on("DeletePassage", lambda _: passages.DeletePassageResponse())
    hits = [passage_pb2.PassageHit(passage=PASSAGE, score=0.5, text_score=2.0), passage_pb2.PassageHit(passage=PIECE)]
    backend.on("SearchPassages", lambda _: passages.SearchPassagesResponse(hits=hits, without_vectors=["loci/hash"]))


async def test_archives(edge: Edge, backend: Backend) -> None:
    sdk = edge.sdk.archives
    made = await sdk.create(name="Lore", description="d", embedding="loci/hash")
    assert (made.id, made.name, made.metadata, made.vector_db_provider) == (ARCHIVE_ID, "Lore", {"k": 1}, "native")
    assert (made.created_by_id, made.last_updated_by_id) == (USER_ID, USER_ID)
    # A model that nobody offers any more: the archive knows how long its vectors are.
    assert made.embedding_config is not None
    assert (made.embedding_config.handle, made.embedding_config.embedding_dim) == ("old/model", 384)
    config: Any = {"embedding_endpoint_type": "openai", "embedding_model": "small", "embedding_dim": 3}
    await sdk.create(name="Old style", embedding_config=config)
    asked = [request.archive for request in backend.requests("CreateArchive")]
    assert [(one.name, one.embedding) for one in asked] == [("Lore", "loci/hash"), ("Old style", "openai/small")]
    assert all(one.id.startswith("archive-") for one in asked)

    assert (await sdk.retrieve(ARCHIVE_ID)).name == "Lore"
    page = await sdk.list(name="Lore", agent_id=AGENT_ID, limit=3, order="asc")
    assert [one.id for one in page.items] == [ARCHIVE_ID]
    [listed] = backend.requests("ListArchives")
    assert (listed.name, listed.agent_id, listed.page.page_size, listed.page.order == ORDER_DESCENDING) == (
        "Lore",
        AGENT_ID,
        3,
        False,
    )
    await sdk.update(ARCHIVE_ID, name="New", description=None)
    await sdk.update(ARCHIVE_ID)
    [updated] = backend.requests("UpdateArchive")
    assert (list(updated.update_mask.paths), updated.archive.name) == (["name"], "New")

    assert await edge.sdk.agents.archives.attach(ARCHIVE_ID, agent_id=AGENT_ID) is None
    assert await edge.sdk.agents.archives.detach(ARCHIVE_ID, agent_id=AGENT_ID) is None
    assert backend.requests("AttachArchive")[0].agent_id == AGENT_ID
    agents = await edge.http.get(f"/v1/archives/{ARCHIVE_ID}/agents/")
    assert [agent["id"] for agent in agents.json()] == [AGENT_ID]
    assert (await edge.http.delete(f"/v1/archives/{ARCHIVE_ID}")).status_code == 204
    backend.on("GetArchive", _raise(errors.NotFound("Archive x not found", reason="ARCHIVE_NOT_FOUND")))
    with pytest.raises(NotFoundError, match="not found"):
        await sdk.retrieve(ARCHIVE_ID)


async def test_passages_of_archives(edge: Edge, backend: Backend) -> None:
    sdk = edge.sdk.archives.passages
    stored = await sdk.create(ARCHIVE_ID, text="Haskell", metadata={"k": [1]}, tags=["x"])
    assert (stored.id, stored.text, stored.archive_id, stored.metadata) == (PASSAGE_ID, "Haskell", ARCHIVE_ID, {})
    assert stored.embedding_config is not None
    many = await sdk.create_many(ARCHIVE_ID, passages=[{"text": "a", "created_at": "2020-01-01"}, {"text": "b"}])
    assert [one.id for one in many] == [PASSAGE_ID]
    one, batch = backend.requests("CreatePassages")
    assert (one.archive_id, one.agent_id, one.passages[0].metadata_json) == (ARCHIVE_ID, "", '{"k":[1]}')
    assert [draft.text for draft in batch.passages] == ["a", "b"]
    assert len({draft.id for draft in batch.passages}) == 2
    changed = await edge.http.patch(f"/v1/archives/{ARCHIVE_ID}/passages/{PASSAGE_ID}", json={"text": "b", "tags": []})
    assert changed.json()["text"] == "Haskell"
    await edge.http.patch(f"/v1/agents/{AGENT_ID}/archival-memory/{PASSAGE_ID}", json={"metadata": {}})
    masks = [(request.agent_id, sorted(request.update_mask.paths)) for request in backend.requests("UpdatePassage")]
    assert masks == [("", ["tags", "text"]), (AGENT_ID, ["metadata_json"])]
    listed = await edge.http.get(f"/v1/archives/{ARCHIVE_ID}/passages", params={"tags": ["x", "y"], "limit": 2})
    assert len(listed.json()) == 1
    assert list(backend.requests("ListPassages")[0].tags) == ["x", "y"]
    assert (await edge.http.delete(f"/v1/archives/{ARCHIVE_ID}/passages/{PASSAGE_ID}/")).status_code == 204


async def test_search_in_all_passages(edge: Edge, backend: Backend) -> None:
    search = edge.sdk.passages.search
    found = await search(query="language", tags=["x"], tag_match_mode="all", limit=2_000, extra_body={"mode": "text"})
    assert [(hit.score, hit.metadata) for hit in found] == [
        (0.5, {"vector_score": None, "text_score": 2.0}),
        (0.0, {"vector_score": None, "text_score": None}),
    ]
    piece = found[1].passage
    assert (piece.source_id, piece.file_id, piece.file_name) == ("source-1", "file-1", "docs/a.md")
    assert piece.archive_id is None
    await search(query="a", agent_id=AGENT_ID, archive_id=ARCHIVE_ID)
    await search(query="a", archive_id=ARCHIVE_ID, start_date="2025-01-01T00:00:00Z")
    everywhere, of_agent, of_archive = backend.requests("SearchPassages")
    assert (everywhere.mode, everywhere.top_k, everywhere.match_all_tags) == (passage_pb2.SEARCH_MODE_TEXT, 1_000, True)
    assert [(one.agent_id, one.archive_id) for one in (everywhere, of_agent, of_archive)] == [
        ("", ""),
        (AGENT_ID, ""),
        ("", ARCHIVE_ID),
    ]
    assert of_archive.start_time.seconds == 1_735_689_600
    assert await search(query=" ") == await search()
    newest = await search(limit=1)
    assert [(hit.passage.id, hit.score) for hit in newest] == [(PASSAGE_ID, 0.0)]
    assert backend.requests("ListPassages")[0].page.order == ORDER_DESCENDING
    path = f"/v1/agents/{AGENT_ID}/archival-memory/search"
    # The second is of the year 10000 in Berlin, where the agent is.
    assert samples.agent().timezone == "Europe/Berlin"
    answer = await edge.http.get(path, params={"query": "a", "search_mode": "vector"})
    made = [one["timestamp"] for one in answer.json()["results"]]
    assert made == ["2025-12-01T13:00:00+01:00", "9999-12-31T23:59:59+00:00"]
    assert answer.headers["x-loci-without-vectors"] == "loci/hash"
    assert backend.requests("SearchPassages")[-1].mode == passage_pb2.SEARCH_MODE_VECTOR


async def test_a_hit_brings_its_neighbours_along(edge: Edge, backend: Backend) -> None:
    hit = passage_pb2.PassageHit(passage=PASSAGE, score=0.5)
    hit.before.add().CopyFrom(PASSAGE)
    hit.before[0].id = hit.before[0].id[:-1] + "e"
    backend.on("SearchPassages", lambda _: passage_service_pb2.SearchPassagesResponse(hits=[hit]))
    found = (await edge.http.post("/v1/passages/search", json={"query": "a", "context": 1})).json()
    assert {side: [one["id"] for one in some] for side, some in found[0]["context"].items()} == {
        "before": [hit.before[0].id],
        "after": [],
    }
    path = f"/v1/agents/{AGENT_ID}/archival-memory/search"
    (result,) = (await edge.http.get(path, params={"query": "a", "context": 2})).json()["results"]
    assert [one["content"] for one in result["context"]["before"]] == [PASSAGE.text]
    assert [one.context for one in backend.requests("SearchPassages")] == [1, 2]
    assert "context" not in (await edge.http.post("/v1/passages/search", json={"query": "a"})).json()[0]


async def test_facts_that_change(edge: Edge, backend: Backend) -> None:
    fact = passage_pb2.Passage(key="ada/home", superseded_by_id=PASSAGE_ID[:-1] + "e")
    fact.MergeFrom(PASSAGE)
    fact.valid_to.CopyFrom(samples.NOON)
    backend.on("CreatePassages", lambda _: passage_service_pb2.CreatePassagesResponse(passages=[fact]))
    body = {"text": "x", "key": "ada/home", "supersedes": [PASSAGE_ID], "valid_from": "2024-01-01T00:00:00Z"}
    answer = (await edge.http.post(f"/v1/archives/{ARCHIVE_ID}/passages", json=body)).json()
    assert (answer["key"], answer["superseded_by_id"]) == ("ada/home", fact.superseded_by_id)
    assert answer["valid_to"].startswith("2025-12-01T12:00:00")
    assert "valid_from" not in answer
    (draft,) = backend.requests("CreatePassages")[-1].passages
    assert (draft.key, list(draft.supersedes), draft.valid_from.seconds) == ("ada/home", [PASSAGE_ID], 1_704_067_200)
    path = f"/v1/agents/{AGENT_ID}/archival-memory/{PASSAGE_ID}"
    await edge.http.patch(path, json={"valid_to": None})
    change = backend.requests("UpdatePassage")[-1]
    assert (list(change.update_mask.paths), change.passage.HasField("valid_to")) == (["valid_to"], False)
    for asked in ({"as_of": "2024-01-01T00:00:00Z"}, {"history": True}):
        await edge.http.post("/v1/passages/search", json={"query": "a", **asked})
        await edge.http.post("/v1/passages/search", json=asked)
    (then, ever), (listed_then, listed_ever) = backend.requests("SearchPassages"), backend.requests("ListPassages")
    assert (then.as_of.seconds, then.history, ever.HasField("as_of"), ever.history) == (
        1_704_067_200,
        False,
        False,
        True,
    )
    assert (listed_then.as_of.seconds, listed_ever.current) == (1_704_067_200, False)
    await edge.http.post("/v1/passages/search", json={})
    assert backend.requests("ListPassages")[-1].current


async def test_an_agents_passages_have_cursors_in_time(edge: Edge, backend: Backend) -> None:
    backend.on("ListPassages", lambda _: passage_service_pb2.ListPassagesResponse())
    path = f"/v1/agents/{AGENT_ID}/archival-memory"
    for ascending, after, before in (("true", PASSAGE_ID, ""), ("false", "", PASSAGE_ID)):
        answer = await edge.http.get(path, params={"after": PASSAGE_ID, "ascending": ascending})
        assert (answer.status_code, answer.json()) == (200, [])
        page = backend.requests("ListPassages")[-1].page
        assert (page.after, page.before) == (after, before)
    # Who is not there has none.
    assert not backend.requests("GetAgent")


async def test_a_cursor_that_names_nothing_is_ignored(edge: Edge, backend: Backend) -> None:
    def answer(request: Any) -> Any:
        for field in ("after", "before"):
            if request.page.HasField(field) and getattr(request.page, field) != ARCHIVE_ID:
                raise errors.NotFound("no", reason="CURSOR_NOT_FOUND", metadata={"field": field})
        return archive_service_pb2.ListArchivesResponse(archives=[ARCHIVE])

    backend.on("ListArchives", answer)
    gone = "archive-00000000-0000-4000-8000-0000000000ff"
    for cursors, kept in (
        ({"after": gone}, ("", "")),
        ({"after": ARCHIVE_ID, "before": gone}, (ARCHIVE_ID, "")),
        ({"after": gone, "before": gone}, ("", "")),
    ):
        reply = await edge.http.get("/v1/archives", params=cursors)
        assert [one["id"] for one in reply.json()] == [ARCHIVE_ID]
        page = backend.requests("ListArchives")[-1].page
        assert (page.after, page.before) == kept
    # What else is not found is said.
    backend.on("ListArchives", _raise(errors.NotFound("no", reason="AGENT_NOT_FOUND")))
    assert (await edge.http.get("/v1/archives", params={"after": gone})).status_code == 404
    backend.on("ListPassages", _raise(errors.NotFound("no", reason="CURSOR_NOT_FOUND", metadata={"field": "after"})))
    reply = await edge.http.get(f"/v1/agents/{AGENT_ID}/archival-memory", params={"after": PASSAGE_ID})
    assert (reply.status_code, reply.json()) == (200, [])


async def test_a_limit_of_0_is_none_for_passages_of_agents(edge: Edge, backend: Backend) -> None:
    backend.on("ListPassages", lambda _: passage_service_pb2.ListPassagesResponse())
    assert (await edge.http.get(f"/v1/agents/{AGENT_ID}/archival-memory?limit=0")).json() == []
    assert backend.requests("ListPassages")[-1].page.page_size == 1_000


async def test_what_finds_nothing_is_not_searched(edge: Edge, backend: Backend) -> None:
    backend.on("GetAgent", lambda _: agent_service_pb2.GetAgentResponse(agent=samples.agent()))
    backend.on("GetArchive", lambda _: archive_service_pb2.GetArchiveResponse())
    answer = await edge.http.get(f"/v1/agents/{AGENT_ID}/archival-memory/search", params={"query": " "})
    assert (answer.status_code, answer.json()) == (200, {"results": [], "count": 0})
    answer = await edge.http.post(f"/v1/archives/{ARCHIVE_ID}/passages/batch", json={"passages": []})
    assert (answer.status_code, answer.json()) == (200, [])


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        ("POST", "/v1/archives", {}, "name"),
        ("POST", "/v1/passages/search", {"query": "a", "context": 11}, "context"),
        ("GET", f"/v1/agents/{AGENT_ID}/archival-memory/search?query=a&context=-1", None, "context"),
        ("POST", "/v1/messages/search", {"query": "a", "context": 11}, "context"),
        ("POST", "/v1/archives", {"name": "a", "embedding": "no-handle"}, "provider/model"),
        ("GET", "/v1/archives/block-1", None, "archive-"),
        # In UTC these are before the year 1, or after 9999.
        ("POST", f"/v1/archives/{ARCHIVE_ID}/passages", {"text": "a", "created_at": EARLY}, "created_at"),
        ("POST", "/v1/passages/search", {"query": "a", "end_date": "9999-12-31T23:59:59-12:00"}, "end_date"),
        (
            "GET",
            f"/v1/agents/{AGENT_ID}/archival-memory/search?query=a&start_datetime={quote(EARLY)}",
            None,
            "start_datetime",
        ),
        ("POST", "/v1/messages/search", {"query": "a", "start_date": EARLY}, "start_date"),
        ("PATCH", f"/v1/conversations/{CONVERSATION_ID}", {"last_message_at": EARLY}, "last_message_at"),
        ("POST", f"/v1/archives/{ARCHIVE_ID}/passages", {"tags": []}, "text"),
        ("POST", f"/v1/archives/{ARCHIVE_ID}/passages", {"text": "a\0b"}, "NUL"),
        ("POST", f"/v1/archives/{ARCHIVE_ID}/passages", {"text": "a", "metadata": []}, "metadata"),
        ("POST", f"/v1/archives/{ARCHIVE_ID}/passages/batch", {"passages": [{"text": "a"}] * 1_001}, "1000"),
        ("POST", "/v1/passages/search", {"query": "a", "limit": 0}, "limit"),
        ("POST", f"/v1/archives/{ARCHIVE_ID}/passages", {"text": "a", "supersedes": ["block-1"]}, "passage-"),
        ("POST", "/v1/passages/search", {"query": "a", "as_of": EARLY}, "as_of"),
        ("POST", "/v1/passages/search", {"query": "a", "search_mode": "guess"}, "search_mode"),
        ("POST", "/v1/passages/search", {"query": "a", "archive_id": "archive-1"}, "archive-"),
        ("GET", f"/v1/agents/{AGENT_ID}/archival-memory/search?query=a&top_k=0", None, "top_k"),
        ("GET", f"/v1/agents/{AGENT_ID}/archival-memory/search?query=a&mode=guess", None, "mode"),
    ],
)
async def test_wrong_requests(edge: Edge, backend: Backend, method: str, path: str, body: Any, says: str) -> None:
    answer = await edge.http.request(method, path, json=body)
    assert (answer.status_code, says in answer.text) == (422, True), answer.text
    assert backend.asked == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidArgument("no", reason="ARCHIVE_INVALID"), 422),
        (errors.InvalidArgument("no", reason="PASSAGE_INVALID"), 422),
        (errors.InvalidArgument("no", reason="QUERY_INVALID"), 400),
        (errors.AlreadyExists("no", reason="ARCHIVE_ID_TAKEN"), 409),
        (errors.NotFound("no", reason="EMBEDDING_NOT_FOUND"), 400),
        (errors.NotFound("no", reason="ARCHIVE_NOT_FOUND"), 404),
        (errors.NotFound("no", reason="ARCHIVE_NOT_ATTACHED"), 404),
    ],
)
async def test_refusals_of_the_service(edge: Edge, backend: Backend, error: errors.LociError, status: int) -> None:
    backend.on("CreateArchive", _raise(error))
    assert (await edge.http.post("/v1/archives", json={"name": "a"})).status_code == status


def _raise(error: Exception) -> Any:
    def answer(_: Any) -> Any:
        raise error

    return answer
