"""Folders and files with the official client: taken in, read, found, replaced and deleted."""

from __future__ import annotations

import httpx
import pytest
from letta_client import APIStatusError, BadRequestError, ConflictError, NotFoundError, UnprocessableEntityError

from tests import documents
from tests.e2e.helpers import finished_file
from tests.e2e.stack import Stack


def test_a_folder_takes_files_in(stack: Stack) -> None:
    client = stack.client()
    folder = client.folders.create(name="e2e law", description="laws", metadata={"k": 1}, embedding="loci/hash")
    assert (folder.embedding_config.handle, folder.metadata) == ("loci/hash", {"k": 1})
    assert client.folders.retrieve(folder.id) == folder
    with pytest.raises(ConflictError):
        client.folders.create(name="e2e law")
    assert [one.id for one in client.folders.list(name="e2e law")] == [folder.id]
    changed = client.folders.update(folder.id, instructions="cite them")
    assert (changed.instructions, changed.description) == ("cite them", "laws")

    note = client.folders.files.upload(folder.id, file=("note.md", b"# Cats\n\nA cat sleeps.\n", "text/markdown"))
    assert (note.file_name, note.original_file_name, note.source_id) == ("e2e law/note.md", "note.md", folder.id)
    assert (note.file_size, note.file_type, note.content) == (22, "text/x-markdown", None)
    # Quicker than the next look of the worker: an upload wakes it.
    file = finished_file(client, folder.id, note.id)
    assert (file.processing_status, file.content) == ("completed", "# Cats\n\nA cat sleeps.\n")
    assert file.file_name == "note.md"
    assert (file.total_chunks, file.chunks_embedded, file.error_message) == (1, 1, None)
    again = client.folders.files.upload(folder.id, file=("note.md", b"second"))
    assert again.file_name == "e2e law/note_(1).md"
    same = client.folders.files.upload(folder.id, file=("note.md", b"third"), duplicate_handling="skip")
    assert same.id == note.id
    with pytest.raises(BadRequestError, match="already exists"):
        client.folders.files.upload(folder.id, file=("note.md", b"fourth"), duplicate_handling="error")
    paper = client.folders.files.upload(folder.id, file=("x.bin", documents.pdf("on dogs")), name="paper.pdf")
    assert finished_file(client, folder.id, paper.id).content == "on dogs"
    bad = client.folders.files.upload(folder.id, file=("bad.docx", b"no zip"))
    assert "not a DOCX file" in finished_file(client, folder.id, bad.id).error_message
    large = b"one line of a large file\n" * 20_000
    big = finished_file(client, folder.id, client.folders.files.upload(folder.id, file=("big.log", large)).id)
    assert (big.file_size, len(big.content), big.total_chunks == big.chunks_embedded) == (
        len(large),
        len(large),
        True,
    )
    newest_first = [one.file_name for one in client.folders.files.list(folder.id)]
    assert newest_first == ["big.log", "bad.docx", "paper.pdf", "note_(1).md", "note.md"]
    with pytest.raises(APIStatusError) as refused:
        client.folders.files.upload(folder.id, file=("cat.png", b"\x89PNG\r\n\x1a\n\0\0\0\r"))
    assert refused.value.status_code == 415
    assert list(client.folders.agents.list(folder.id)) == []
    _others(stack, folder.id, note.id)

    assert client.folders.files.delete(note.id, folder_id=folder.id) is None
    with pytest.raises(NotFoundError):
        client.folders.files.retrieve(note.id, folder_id=folder.id)
    client.folders.delete(folder.id)
    with pytest.raises(NotFoundError):
        client.folders.retrieve(folder.id)
    with pytest.raises(NotFoundError):
        client.folders.files.upload(folder.id, file=("note.md", b"x"))
    with pytest.raises(UnprocessableEntityError):
        client.folders.create(name="a/b")


def _others(stack: Stack, folder_id: str, file_id: str) -> None:
    """Checks routes that the client has no methods for."""
    with httpx.Client(base_url=f"{stack.url}/v1", timeout=30) as http:
        assert http.get("/folders/count").json() >= 1
        assert http.get("/folders/name/e2e law").json() == folder_id
        assert http.get("/folders/name/nobody").status_code == 404
        everything = http.get("/folders/metadata", params={"include_detailed_per_source_metadata": True}).json()
        [described] = [one for one in everything["sources"] if one["source_id"] == folder_id]
        assert file_id in [file["file_id"] for file in described["files"]]
        assert everything["total_files"] >= 5
        assert everything["total_size"] >= 500_000
        pieces = http.get(f"/folders/{folder_id}/passages", params={"order": "asc", "limit": 1}).json()
        assert (pieces[0]["text"], pieces[0]["file_id"]) == ("# Cats\n\nA cat sleeps.", file_id)
        assert (pieces[0]["source_id"], pieces[0]["file_name"]) == (folder_id, "e2e law/note.md")
        assert http.get(f"/sources/{folder_id}").json()["name"] == "e2e law"
        retried = http.post(f"/folders/{folder_id}/files/{file_id}/retry").json()
        assert retried["processing_status"] == "completed"
        words_only = http.post("/folders", json={"name": "words", "embedding": ""}).json()
        assert words_only["embedding_config"]["embedding_dim"] == 0
        http.delete(f"/folders/{words_only['id']}")
