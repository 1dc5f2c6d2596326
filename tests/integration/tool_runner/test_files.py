"""Files given to calls, and made by them: kept with the receipt, and gone with it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import execution_service_pb2 as pb
from services.common.errors import InvalidArgument, NotFound
from services.tool_runner.core.job import ExitReason, File, Result
from tests.integration.tool_runner.harness import Client, Service, fails
from tests.page_requests import paged

AGENT = f"agent-{uuid4()}"
READ = '''
def read(report: str, others: list[str] = []) -> str:
    """Read it.

    Args:
        report: a file
        others: more files
    """
    return open(report).read()
'''
SCHEMA = {
    "type": "object",
    "properties": {
        "report": {"type": "string", "format": "file"},
        "others": {"type": "array", "items": {"type": "string", "format": "file"}},
    },
    "required": ["report"],
}


async def upload(client: Client, name: str, content: bytes, *, chunk: int = 1_000_000) -> pb.ExecutionFile:
    async def parts() -> AsyncIterator[pb.UploadFileRequest]:
        yield pb.UploadFileRequest(name=name)
        for start in range(0, len(content), chunk):
            yield pb.UploadFileRequest(chunk=content[start : start + chunk])

    return (await client.execution.UploadFile(parts())).file


async def fetched(client: Client, file_id: str) -> tuple[pb.ExecutionFile, bytes]:
    stream = client.execution.StreamFile(pb.StreamFileRequest(file_id=file_id))
    parts = [part async for part in stream]
    return parts[0].file, b"".join(part.chunk for part in parts)


async def names(client: Client, **wanted: Any) -> list[str]:
    return [file.name for file in (await client.execution.ListFiles(pb.ListFilesRequest(**paged(**wanted)))).files]


async def test_a_file_is_kept_listed_fetched_and_erased(runner: Service) -> None:
    content = bytes(range(256)) * 10_000
    file = await upload(runner, "sub/data.bin", content)
    assert (file.name, file.size, file.call_key) == ("sub/data.bin", len(content), "")
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    assert await fetched(runner, file.id) == (file, content)
    for number in range(3):
        await upload(runner, f"{number}.txt", b"")
    page = await runner.execution.ListFiles(pb.ListFilesRequest(page=PageRequest(page_size=3)))
    assert [one.name for one in page.files] == ["2.txt", "1.txt", "0.txt"]
    assert await names(runner, page_size=3, page_token=page.next_page_token) == ["sub/data.bin"]
    with runner.of(uuid4()), fails(NotFound, "EXECUTION_FILE_NOT_FOUND"):
        await fetched(runner, file.id)
    await runner.execution.DeleteFile(pb.DeleteFileRequest(file_id=file.id))
    with fails(NotFound, "EXECUTION_FILE_NOT_FOUND"):
        await runner.execution.DeleteFile(pb.DeleteFileRequest(file_id=file.id))
    with fails(InvalidArgument, "PAGE_TOKEN_INVALID"):
        await names(runner, page_token="MTIuYWJj")


@pytest.mark.parametrize(("name", "size"), [("../etc/passwd", 1), ("", 1), ("big", 16 * 1024 * 1024 + 1)])
async def test_what_no_call_could_be_given_is_refused(runner: Service, name: str, size: int) -> None:
    with fails(InvalidArgument, "EXECUTION_FILE_INVALID"):
        await upload(runner, name, bytes(size))


async def test_a_call_finds_its_files_below_inputs(runner: Service) -> None:
    tool = await runner.upsert(READ, args_json_schema_json=json.dumps(SCHEMA))
    runner.sandbox.gate.set()
    one, two, three = [await upload(runner, name, name.encode()) for name in ("a.txt", "a.txt", "c/d.txt")]
    request = pb.ExecuteToolRequest(
        call_key="files",
        tool_id=tool.id,
        arguments_json=json.dumps({"report": one.id, "others": [two.id, one.id]}),
        file_ids=[three.id],
    )
    assert (await runner.execution.ExecuteTool(request)).receipt.outcome == pb.OUTCOME_SUCCESS
    job = runner.sandbox.jobs[0]
    assert dict(job.arguments) == {"report": "/inputs/a.txt", "others": ["/inputs/2/a.txt", "/inputs/a.txt"]}
    assert {file.name: file.content for file in job.inputs} == {
        "c/d.txt": b"c/d.txt",
        "a.txt": b"a.txt",
        "2/a.txt": b"a.txt",
    }


async def test_files_that_are_not_there_are_told_and_nothing_runs(runner: Service) -> None:
    tool = await runner.upsert(READ, args_json_schema_json=json.dumps(SCHEMA))
    missing = f"execfile-{UUID(int=5)}"
    for arguments, said in (
        ({"report": missing}, f"there is no file {missing}"),
        ({"report": "report.txt"}, "report: must be the id of a file"),
    ):
        receipt = await runner.call(tool.id, **arguments)
        assert receipt.outcome == pb.OUTCOME_INVALID_ARGUMENTS
        assert said in receipt.tool_return
    with runner.of(uuid4()):
        theirs = await upload(runner, "a.txt", b"secret")
    assert "there is no file" in (await runner.call(tool.id, report=theirs.id)).tool_return
    assert runner.sandbox.jobs == []


async def test_files_that_a_call_made_are_kept_with_its_receipt(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    made = (File("out/a.csv", b"1,2"), File("b", b""), File("../../evil", b"x"))
    runner.sandbox.result = Result(ExitReason.OK, result='"done"', files=made, files_dropped=2)
    request = pb.ExecuteToolRequest(call_key="made", tool_id=tool.id, agent_id=AGENT)
    receipt = (await runner.execution.ExecuteTool(request)).receipt
    assert [(file.name, file.size, file.call_key, file.agent_id) for file in receipt.files] == [
        ("out/a.csv", 3, "made", AGENT),
        ("b", 0, "made", AGENT),
    ]
    first, line = receipt.tool_return.splitlines()
    assert first == "done"
    assert line == (
        f"Files made: out/a.csv ({receipt.files[0].id}, 3 bytes), b ({receipt.files[1].id}, 0 bytes); "
        "3 not kept: over a limit, or no regular files"
    )
    assert await runner.receipt("made") == receipt
    assert await fetched(runner, receipt.files[0].id) == (receipt.files[0], b"1,2")
    await upload(runner, "other.txt", b"")
    assert await names(runner, call_key="made") == await names(runner, agent_id=AGENT) == ["b", "out/a.csv"]
    await runner.execution.PurgeReceipts(pb.PurgeReceiptsRequest(agent_id=AGENT))
    assert await names(runner) == ["other.txt"]
