"""An archive and a folder move from one embedding model to another, through every service."""

from typing import Any

import httpx
import pytest
from letta_client import UnprocessableEntityError

from tests.e2e.helpers import finished_file
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply
from tests.polling import wait_until

SMALL = "openai/text-embedding-3-small"


def asked(http: httpx.Client, path: str, verb: str = "") -> dict[str, Any]:
    """The change as it stands, or after `rollback` or `finish`."""
    answer = http.post(f"{path}/{verb}") if verb else http.get(path)
    assert answer.status_code == 200, answer.text
    change: dict[str, Any] = answer.json()
    return change


def moved(http: httpx.Client, path: str, embedding: str | None) -> dict[str, Any]:
    """The change once it is completed."""
    begun = http.post(path, json={"embedding": embedding})
    assert (begun.status_code, begun.json()["to_embedding"]) == (202, embedding), begun.text

    def ended() -> dict[str, Any] | None:
        change = asked(http, path)
        return change if change["state"] != "running" else None

    return wait_until(ended)


def test_an_archive_is_moved_and_back_while_it_is_searched(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    archive = client.archives.create(name="Moving house", embedding="loci/hash")
    texts = [f"Box {number} holds plates and cups." for number in range(150)]
    client.archives.passages.create_many(archive.id, passages=[{"text": text} for text in texts])
    search = client.passages.search
    with httpx.Client(base_url=stack.url, timeout=30) as http:
        path = f"/v1/archives/{archive.id}/embedding-change"
        assert http.get(path).status_code == 404
        with pytest.raises(UnprocessableEntityError, match="embedding-change"):
            client.archives.update(archive.id, extra_body={"embedding": SMALL})
        missing = http.post(path, json={"embedding": "openai/no-such-model"})
        assert (missing.status_code, "openai/no-such-model" in missing.text) == (400, True)
        # The key is refused when the first batch is made; that passes.
        openai_fake.reply(Reply(), Reply(error="authentication"))
        begun = http.post(path, json={"embedding": SMALL}).json()
        assert (begun["from_embedding"], begun["total"]) == ("loci/hash", 150)
        while asked(http, path)["state"] == "running":
            assert texts[7] in [hit.passage.text for hit in search(query=texts[7], archive_id=archive.id)]
        change = asked(http, path)
        assert (change["state"], change["embedded"], change["last_error"]) == ("completed", 150, None)
        config = client.archives.retrieve(archive.id).embedding_config
        assert (config.handle, config.embedding_dim) == (SMALL, 1_536)
        [hit] = search(query=texts[9], archive_id=archive.id, limit=1, extra_body={"search_mode": "vector"})
        assert (hit.passage.text, hit.score) == (texts[9], pytest.approx(1.0, abs=0.01))
        assert asked(http, path, "rollback")["state"] == "rolled_back"
        assert client.archives.retrieve(archive.id).embedding_config.handle == "loci/hash"
        [hit] = search(query=texts[8], archive_id=archive.id, limit=1, extra_body={"search_mode": "vector"})
        assert hit.passage.text == texts[8]


def test_a_folder_is_moved(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    folder = client.folders.create(name="e2e moving", embedding="loci/hash")
    file = client.folders.files.upload(folder.id, file=("inventory.txt", b"A lamp, a rug and two chairs."))
    finished_file(client, folder.id, file.id)
    with httpx.Client(base_url=stack.url, timeout=30) as http:
        path = f"/v1/folders/{folder.id}/embedding-change"
        change = moved(http, path, SMALL)
        assert (change["archive_id"], change["embedded"], change["total"]) == (folder.id, 1, 1)
        assert client.folders.retrieve(folder.id).embedding_config.handle == SMALL
        assert asked(http, path, "finish")["state"] == "finished"
        assert http.post(f"{path}/rollback").status_code == 409
        assert moved(http, path, None)["from_embedding"] == SMALL
    assert openai_fake.requests
