"""Archives and passages with the official client, through every service."""

from typing import Any

import httpx
import pytest
from letta_client import BadRequestError, NotFoundError, UnprocessableEntityError

from tests.e2e.stack import Stack


def found(hits: Any) -> list[str]:
    """Texts of a search in all passages."""
    return [hit.passage.text for hit in hits]


def test_archives_and_their_passages(stack: Stack) -> None:
    client = stack.client()
    # What it is asked first, a gateway may not know for a moment.
    assert "loci/hash" in [model.handle for model in client.models.embeddings.list()]
    archive = client.archives.create(name="Expeditions", description="Who went where.", embedding="loci/hash")
    assert (archive.vector_db_provider, archive.embedding_config.handle) == ("native", "loci/hash")
    assert archive.embedding_config.embedding_dim > 0
    assert client.archives.retrieve(archive.id).name == "Expeditions"
    renamed = client.archives.update(archive.id, name="Journeys")
    assert (renamed.name, renamed.description) == ("Journeys", "Who went where.")
    assert [one.id for one in client.archives.list(name="Journeys")] == [archive.id]
    with pytest.raises(BadRequestError, match="nothing/here"):
        client.archives.create(name="x", embedding="nothing/here")

    ada, bob = (client.agents.create(model="loci/demo", embedding="loci/hash") for _ in range(2))
    for agent in (ada, bob):
        client.agents.archives.attach(archive.id, agent_id=agent.id)
    assert [one.id for one in client.archives.list(agent_id=ada.id)] == [archive.id]

    # What one agent stores, the other finds: the archive is the default of both.
    [mine] = client.agents.passages.create(ada.id, text="Nansen crossed Greenland on skis.", tags=["polar"])
    assert (mine.archive_id, mine.embedding_config.handle) == (archive.id, "loci/hash")
    assert client.agents.passages.search(bob.id, query="Who crossed Greenland?").results[0].id == mine.id
    one = client.archives.passages.create(archive.id, text="Gertrude Bell rode to Hail.", metadata={"year": 1914})
    assert (one.metadata, one.tags) == ({"year": 1914}, None)
    many = client.archives.passages.create_many(
        archive.id,
        passages=[
            {"text": f"Station {number} of the walk around the lake.", "tags": ["lake"], "created_at": "2020-05-01"}
            for number in range(300)
        ],
    )
    assert [passage.text for passage in many[:2]] == [
        "Station 0 of the walk around the lake.",
        "Station 1 of the walk around the lake.",
    ]
    assert len(client.agents.passages.list(bob.id, limit=1_000)) == 302

    search = client.passages.search
    assert found(search(query="Gertrude Bell", limit=1)) == [one.text]
    [hit] = search(query="Nansen", archive_id=archive.id, tags=["polar"], extra_body={"search_mode": "text"})
    assert (hit.passage.id, hit.score) == (mine.id, hit.metadata["text_score"])
    assert all("lake" in text for text in found(search(query="station", tags=["lake"], end_date="2020-06-01")))
    assert search(query="station", start_date="2020-06-01", tags=["lake"]) == []
    nobody = client.agents.create(model="loci/demo", embedding="loci/hash")
    assert search(query="Nansen", agent_id=nobody.id, archive_id=archive.id) == []
    assert len(search(limit=3)) == 3

    path, said = f"/v1/agents/{ada.id}/archival-memory/{mine.id}", "Amundsen reached the pole first."
    changed = httpx.patch(f"{stack.url}{path}", json={"text": said}, timeout=30)
    assert changed.json()["tags"] == ["polar"]
    assert found(search(query="Amundsen", limit=1)) == ["Amundsen reached the pole first."]
    assert found(search(query="Greenland skis", extra_body={"search_mode": "text"})) == []
    client.archives.passages.delete(one.id, archive_id=archive.id)
    with pytest.raises(NotFoundError, match="not found"):
        client.archives.passages.delete(one.id, archive_id=archive.id)
    with pytest.raises(UnprocessableEntityError, match="more than blanks"):
        client.archives.passages.create(archive.id, text=" ")

    client.agents.archives.detach(archive.id, agent_id=bob.id)
    assert client.agents.passages.list(bob.id) == []
    agents = httpx.get(f"{stack.url}/v1/archives/{archive.id}/agents", timeout=30).json()
    assert [agent["id"] for agent in agents] == [ada.id]
    client.archives.delete(archive.id)
    with pytest.raises(NotFoundError, match="not found"):
        client.archives.retrieve(archive.id)
    assert client.agents.passages.list(ada.id) == []
    assert found(search(query="Amundsen pole", limit=1, extra_body={"search_mode": "text"})) == []
    [fresh] = client.agents.passages.create(ada.id, text="A new beginning.")
    assert fresh.archive_id not in (None, archive.id)
