"""Uploads over REST: streamed on as they come, refused before they are read, and never too large."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common import errors
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.scripted import Backend

FOLDER_ID = "source-00000000-0000-4000-8000-00000000000a"
MEBIBYTE = 1024 * 1024
FILE = folder_pb2.File(
    id="file-00000000-0000-4000-8000-00000000000b",
    folder_id=FOLDER_ID,
    name="a.md",
    path="docs/a.md",
    original_name="a.md",
    media_type="text/markdown",
    size=3,
    status=folder_pb2.FILE_STATUS_EMBEDDING,
    error="trying again: the provider is down",
    total_chunks=2,
    chunks_embedded=1,
    created_at=samples.NOON,
    updated_at=samples.NOON,
)
UPLOAD = f"/v1/folders/{FOLDER_ID}/upload"


class Taken:
    """What the memory service was sent."""

    def __init__(self, backend: Backend) -> None:
        self.header = folder_service_pb2.UploadHeader()
        self.digest, self.size, self.largest = hashlib.sha256(), 0, 0
        self.is_new = True
        backend.on("UploadFile", self.take)

    async def take(self, requests: AsyncIterator[Any]) -> folder_service_pb2.UploadFileResponse:
        """Reads it to the end."""
        async for request in requests:
            if request.HasField("header"):
                self.header = request.header
            self.digest.update(request.data)
            self.size += len(request.data)
            self.largest = max(self.largest, len(request.data))
        return folder_service_pb2.UploadFileResponse(file=FILE, is_new=self.is_new)


async def test_a_file_is_streamed_on_as_it_comes(edge: Edge, backend: Backend) -> None:
    taken = Taken(backend)
    data = bytes(range(256)) * 12_000 + b"\r\n--not the boundary\r\n"
    file = await edge.sdk.folders.files.upload(
        FOLDER_ID, file=('Größe "1".md', data, "text/markdown"), duplicate_handling="replace"
    )
    assert (taken.header.name, taken.header.media_type) == ("Größe %221%22.md", "text/markdown")
    assert taken.header.on_duplicate == folder_service_pb2.ON_DUPLICATE_REPLACE
    assert taken.header.file_id.startswith("file-")
    assert taken.digest.digest() == hashlib.sha256(data).digest()
    assert taken.largest <= MEBIBYTE
    # The answer has the name that agents see; those of the folder have the file's own.
    assert (file.file_name, file.processing_status, file.file_size) == ("docs/a.md", "embedding", 3)
    assert (file.error_message, file.total_chunks, file.chunks_embedded) == (FILE.error, 2, 1)
    # Other parts are passed over, and an older address is good as well.
    other = {"note": (None, b"a field"), "file": ("b.txt", b""), "more": ("c.txt", b"c")}
    answer = await edge.http.post(f"/v1/sources/{FOLDER_ID}/upload", params={"name": "named.txt"}, files=other)
    assert (answer.status_code, taken.header.name) == (200, "named.txt")
    # Of what a client sends as a file's name the last part counts; what it asks for as a name is kept whole.
    for sent, params, name in (
        ("C:\\me\\a.txt", {}, "a.txt"),
        ("/me/a.txt", {}, "a.txt"),
        ("a", {"name": "x/b.md"}, "x/b.md"),
    ):
        await edge.http.post(UPLOAD, params=params, files={"file": (sent, b"a")})
        assert taken.header.name == name
    for handling, is_new, result in (("skip", False, "skipped"), ("skip", True, None), ("suffix", False, None)):
        taken.is_new = is_new
        answer = await edge.http.post(UPLOAD, params={"duplicate_handling": handling}, files={"file": ("a", b"a")})
        assert answer.headers.get("x-upload-result") == result


async def test_what_is_no_upload_is_told(edge: Edge, backend: Backend) -> None:
    Taken(backend)
    multipart = {"content-type": "multipart/form-data; boundary=x"}
    bad: tuple[dict[str, Any], ...] = (
        {"json": {}},
        {"files": {"other": ("a.txt", b"a")}},
        {"data": {"file": "no file name"}, "files": {"other": ("a.txt", b"a")}},
        {"content": b"no boundary", "headers": multipart},
        {"content": b"", "headers": {"content-type": f"multipart/form-data; boundary={'x' * 300}"}},
        {
            "content": b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhalf',
            "headers": multipart,
        },
        {"files": {"file": ("a.txt", b"a")}, "params": {"duplicate_handling": "guess"}},
    )
    for options in bad:
        answer = await edge.http.post(UPLOAD, **options)
        assert answer.status_code == 422, answer.text
    assert (await edge.http.post("/v1/folders/nothing/upload", files={"file": ("a", b"")})).status_code == 422


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (errors.InvalidArgument("no", reason="FILE_TYPE_UNSUPPORTED"), 415),
        (errors.InvalidArgument("no", reason="FILE_TOO_LARGE"), 413),
        (errors.NotFound("no", reason="FOLDER_NOT_FOUND"), 404),
        (errors.AlreadyExists("no", reason="FILE_NAME_TAKEN"), 400),
    ],
)
async def test_a_refusal_has_its_status(edge: Edge, backend: Backend, failure: errors.LociError, status: int) -> None:
    async def refuse(requests: AsyncIterator[Any]) -> None:
        async for _ in requests:
            pass
        raise failure

    backend.on("UploadFile", refuse)
    answer = await edge.http.post(UPLOAD, files={"file": ("a.txt", bytes(4 * MEBIBYTE))})
    assert answer.status_code == status
    assert answer.json()["detail"].endswith("no")


async def test_a_file_over_the_limit_is_refused_before_and_while_it_is_read(
    start_gateway: StartGateway, backend: Backend
) -> None:
    edge, taken = await start_gateway(max_upload_bytes=2 * MEBIBYTE, max_body_bytes=MEBIBYTE), Taken(backend)
    allowed = await edge.http.post(UPLOAD, files={"file": ("a.txt", bytes(2 * MEBIBYTE))})
    assert (allowed.status_code, taken.size) == (200, 2 * MEBIBYTE)
    told = {"detail": "the file is larger than 2 MB (LOCI_MAX_UPLOAD_MB)"}
    answer = await edge.http.post(UPLOAD, files={"file": ("a.txt", bytes(3 * MEBIBYTE))})
    assert (answer.status_code, answer.json()) == (413, told)
    assert len(backend.requests("UploadFile")) == 1

    async def without_length() -> AsyncIterator[bytes]:
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
        for _ in range(30):
            yield bytes(100_000)
            await asyncio.sleep(0)
        yield b"\r\n--x--\r\n"

    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = await edge.http.post(UPLOAD, content=without_length(), headers=headers)
    assert (answer.status_code, answer.json()) == (413, told)
    other = await edge.http.post("/v1/folders", content=bytes(MEBIBYTE + 1))
    assert "LOCI_MAX_BODY_MIB" in other.text


async def test_a_client_that_leaves_ends_the_upload(edge: Edge, backend: Backend) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def take(requests: AsyncIterator[Any]) -> None:
        begun.set()
        try:
            async for _ in requests:
                pass
        finally:
            ended.set()

    backend.on("UploadFile", take)

    async def half() -> AsyncIterator[bytes]:
        yield b'--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n' + bytes(MEBIBYTE)
        await begun.wait()
        raise ConnectionError

    with pytest.raises((ConnectionError, httpx.HTTPError)):
        await edge.http.post(UPLOAD, content=half(), headers={"content-type": "multipart/form-data; boundary=x"})
    async with asyncio.timeout(20):
        await ended.wait()


async def test_folders_are_created_for_a_model_or_for_none(start_gateway: StartGateway, backend: Backend) -> None:
    edge = await start_gateway(default_embedding="openai/small")

    def create(request: folder_service_pb2.CreateFolderRequest) -> folder_service_pb2.CreateFolderResponse:
        draft = request.folder
        return folder_service_pb2.CreateFolderResponse(
            folder=folder_pb2.Folder(id=draft.id, name=draft.name, embedding=draft.embedding)
        )

    backend.on("CreateFolder", create)
    for body, handle in (
        ({}, "openai/small"),
        ({"embedding": "loci/hash"}, "loci/hash"),
        ({"embedding_config": {"embedding_endpoint_type": "a", "embedding_model": "b"}}, "a/b"),
        ({"embedding": ""}, None),
    ):
        answer = await edge.http.post("/v1/folders/", json={"name": "docs", **body})
        assert answer.json()["embedding_config"]["handle"] == handle
