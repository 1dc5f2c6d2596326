"""Folders and uploads: names, duplicates, sizes, types, and uploads that break off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.memory.v1 import archive_service_pb2 as archive_pb
from loci.memory.v1 import folder_pb2
from loci.memory.v1 import folder_service_pb2 as folder_pb
from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from services.common.ids import from_public, uuid7
from services.memory.files.service import PART_BYTES, UploadService
from services.memory.files.servicer import upload_request
from tests.integration.memory.files import new_folder, upload
from tests.integration.memory.harness import EMBEDDING, Memory, fails
from tests.page_requests import paged


async def test_a_folder_is_made_once_changed_listed_and_deleted(memory: Memory) -> None:
    stub = memory.folders
    draft = folder_pb2.Folder(
        id=f"source-{uuid7()}", name="law", description="d", metadata_json='{"a": 1}', embedding=EMBEDDING
    )
    created = (await stub.CreateFolder(folder_pb.CreateFolderRequest(folder=draft))).folder
    assert (created.name, created.description, created.HasField("instructions")) == ("law", "d", False)
    assert (created.embedding, created.file_count, created.metadata_json) == (EMBEDDING, 0, '{"a":1}')
    assert (await stub.CreateFolder(folder_pb.CreateFolderRequest(folder=draft))).folder == created
    with fails(AlreadyExists, "FOLDER_NAME_TAKEN"):
        await new_folder(memory, "law")
    with fails(NotFound, "MODEL_NOT_FOUND"):
        await new_folder(memory, "other", embedding="nobody/knows")
    for name in ("", " ", "a/b", "n" * 256):
        with fails(InvalidArgument, "FOLDER_INVALID"):
            await new_folder(memory, name)
    second = await new_folder(memory, "math", embedding="")
    with fails(AlreadyExists, "FOLDER_NAME_TAKEN"):
        await stub.UpdateFolder(
            folder_pb.UpdateFolderRequest(
                folder_id=second, folder=folder_pb2.Folder(name="law"), update_mask=FieldMask(paths=["name"])
            )
        )
    changed = await stub.UpdateFolder(
        folder_pb.UpdateFolderRequest(
            folder_id=created.id,
            folder=folder_pb2.Folder(name="laws", instructions="cite"),
            update_mask=FieldMask(paths=["name", "instructions", "description"]),
        )
    )
    assert (changed.folder.name, changed.folder.instructions) == ("laws", "cite")
    assert not changed.folder.HasField("description")
    assert changed.folder.metadata_json == '{"a":1}'

    async def names(**options: Any) -> list[str]:
        found = await stub.ListFolders(folder_pb.ListFoldersRequest(**paged(**options)))
        return [folder.name for folder in found.folders]

    assert await names() == ["laws", "math"]
    assert await names(descending=True, after=second) == ["laws"]
    assert await names(name="math") == ["math"]
    with memory.of(uuid4()):
        assert await names() == []
        with fails(NotFound, "FOLDER_NOT_FOUND"):
            await stub.GetFolder(folder_pb.GetFolderRequest(folder_id=created.id))
    # A folder's archive is no archive of its own.
    assert not (await memory.archives.ListArchives(archive_pb.ListArchivesRequest())).archives
    await upload(memory, second, "a.txt", b"a")
    statement_counts = await stub.CountFolders(folder_pb.CountFoldersRequest())
    assert (statement_counts.folders, statement_counts.files) == (2, 1)
    await stub.DeleteFolder(folder_pb.DeleteFolderRequest(folder_id=second))
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await stub.DeleteFolder(folder_pb.DeleteFolderRequest(folder_id=second))
    statement_counts = await stub.CountFolders(folder_pb.CountFoldersRequest())
    assert (statement_counts.folders, statement_counts.files) == (1, 0)
    assert await new_folder(memory, "math")


async def test_names_that_are_taken(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    first = await upload(memory, folder_id, "report.txt", b"1", media_type="application/octet-stream")
    assert (first.name, first.path, first.original_name) == ("report.txt", "f/report.txt", "report.txt")
    assert first.media_type == "text/plain"
    assert (first.size, first.status) == (1, folder_pb2.FILE_STATUS_PENDING)
    assert (await upload(memory, folder_id, "report.txt", b"2")).name == "report_(1).txt"
    third = await upload(memory, folder_id, "report.txt", b"3")
    assert (third.name, third.original_name) == ("report_(2).txt", "report.txt")
    # The same id again, whatever is sent.
    assert await upload(memory, folder_id, "other.txt", b"other", file_id=third.id) == third
    assert await upload(memory, folder_id, "report.txt", b"4", on_duplicate=folder_pb.ON_DUPLICATE_SKIP) == first
    with fails(AlreadyExists, "FILE_NAME_TAKEN"):
        await upload(memory, folder_id, "report.txt", b"5", on_duplicate=folder_pb.ON_DUPLICATE_ERROR)
    # A client that repeats itself has the file already, if its bytes are the same.
    assert await upload(memory, folder_id, "report.txt", b"3", is_retry=True) == third
    refusing = folder_pb.ON_DUPLICATE_ERROR
    assert await upload(memory, folder_id, "report.txt", b"3", is_retry=True, on_duplicate=refusing) == third
    with fails(AlreadyExists, "FILE_NAME_TAKEN"):
        await upload(memory, folder_id, "report.txt", b"other", is_retry=True, on_duplicate=refusing)
    with fails(AlreadyExists, "FILE_NAME_TAKEN"):
        await upload(memory, await new_folder(memory, "g"), "a.txt", b"a", file_id=third.id)
    new = await upload(memory, folder_id, "report.txt", b"six", on_duplicate=folder_pb.ON_DUPLICATE_REPLACE)
    assert (new.name, new.size) == ("report.txt", 3)
    with fails(NotFound, "FILE_NOT_FOUND"):
        await memory.folders.GetFile(folder_pb.GetFileRequest(folder_id=folder_id, file_id=first.id))
    at_once = await asyncio.gather(*(upload(memory, folder_id, "same.txt", b"x") for _ in range(4)))
    assert sorted(one.name for one in at_once) == [
        "same.txt",
        *(f"same_({number}).txt" for number in (1, 2, 3)),
    ]
    whole = await upload(memory, folder_id, "law/2026/act.txt", b"x")
    assert (whole.name, whole.original_name, whole.path) == ("law/2026/act.txt", "law/2026/act.txt", f"f/{whole.name}")
    replaced = await asyncio.gather(
        *(upload(memory, folder_id, "one.txt", b"x", on_duplicate=folder_pb.ON_DUPLICATE_REPLACE) for _ in range(4))
    )
    list_page = await memory.folders.ListFiles(folder_pb.ListFilesRequest(folder_id=folder_id))
    assert [one.name for one in list_page.files].count("one.txt") == 1
    assert {one.name for one in replaced} == {"one.txt"}
    assert (await memory.folders.GetFolder(folder_pb.GetFolderRequest(folder_id=folder_id))).folder.file_count == 9


async def test_a_list_of_files_has_cursors_and_an_end(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    ids = [(await upload(memory, folder_id, f"{number}.txt", b"x")).id for number in range(5)]

    async def list_page(**options: Any) -> folder_pb.ListFilesResponse:
        return await memory.folders.ListFiles(folder_pb.ListFilesRequest(**paged(folder_id=folder_id, **options)))

    page = await list_page(page_size=2)
    assert [one.id for one in page.files] == ids[:2]
    page = await list_page(page_size=2, page_token=page.next_page_token)
    assert [one.id for one in page.files] == ids[2:4]
    assert [one.id for one in (await list_page(after=ids[3])).files] == ids[4:]
    assert [one.id for one in (await list_page(descending=True, page_size=1)).files] == ids[4:]
    assert [one.id for one in (await list_page(unfinished=True)).files] == ids
    await memory.pool.execute("UPDATE memory.files SET status = 5 WHERE id = ANY($1)", [from_public("file", ids[0])])
    assert [one.id for one in (await list_page(unfinished=True)).files] == ids[1:]
    of_any = folder_pb.GetFileRequest(file_id=ids[0])
    assert (await memory.folders.GetFile(of_any)).file.folder_id == folder_id
    with fails(NotFound, "FILE_NOT_FOUND"):
        await memory.folders.GetFile(folder_pb.GetFileRequest(file_id=f"file-{uuid4()}"))
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await list_page(after=f"file-{uuid4()}")
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await memory.folders.ListFiles(folder_pb.ListFilesRequest(folder_id=f"source-{uuid4()}"))


async def test_what_is_not_taken_in_leaves_nothing(memory: Memory) -> None:
    folder_id = await new_folder(memory, "f")
    with fails(NotFound, "FOLDER_NOT_FOUND"):
        await upload(memory, f"source-{uuid4()}", "a.txt", b"a")
    for name in ("picture.png", "program", "table.xls"):
        with fails(InvalidArgument, "FILE_TYPE_UNSUPPORTED") as caught:
            await upload(memory, folder_id, name, b"\x89PNG\r\n\0\0\0" * 500_000)
        assert "DOCX" in caught[0].message
    for name in ("", "..", "n" * 300):
        with fails(InvalidArgument, "FILE_INVALID"):
            await upload(memory, folder_id, name, b"a")
    with fails(InvalidArgument, "FILE_INVALID"):
        await memory.folders.UploadFile(iter([folder_pb.UploadFileRequest(data=b"a")]))

    async def breaks_off() -> AsyncIterator[folder_pb.UploadFileRequest]:
        yield folder_pb.UploadFileRequest(header=folder_pb.UploadHeader(folder_id=folder_id, name="half.txt"))
        yield folder_pb.UploadFileRequest(data=bytes(2 * PART_BYTES))
        while not await rows(memory, "file_uploads"):
            await asyncio.sleep(0.005)
        raise ConnectionError

    call = memory.folders.UploadFile(breaks_off())
    with pytest.raises((ConnectionError, grpc.aio.AioRpcError, asyncio.CancelledError)):
        await call
    call.cancel()
    async with asyncio.timeout(20):
        while await rows(memory, "file_uploads"):
            await asyncio.sleep(0.01)
    kept = UploadService(memory.stores.uploads, memory.stores.files, most_bytes=PART_BYTES)

    async def too_much() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield bytes(PART_BYTES // 2)

    big = upload_request(folder_pb.UploadHeader(folder_id=folder_id, name="big.txt"))
    with pytest.raises(InvalidArgument, match="larger than 1 MB") as error:
        await kept.take(memory.caller.organization_id, memory.caller.user_id, big, too_much())
    assert error.value.metadata == {"limit": str(PART_BYTES)}
    assert [await rows(memory, table) for table in ("file_uploads", "files", "jobs")] == [0, 0, 0]


async def rows(memory: Memory, table: str) -> int:
    """Of the test's tenant."""
    query = f"SELECT count(*) FROM memory.{table} WHERE organization_id = $1"
    statement_counts: int = await memory.pool.fetchval(query, memory.caller.organization_id)
    return statement_counts
