"""Calls of tools over REST: run, listed, watched across a lost replica, and their files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from loci.agent.v1 import agent_service_pb2
from loci.tool.v1 import execution_service_pb2 as pb
from services.common.errors import FailedPrecondition, InvalidArgument, NotFound, PermissionDenied, Unavailable
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.scripted import Backend, new_id

KEY = "01890000-0000-7000-8000-000000000000/1/0"
RECEIPT = pb.Receipt(
    call_key=KEY,
    tool_id="tool-00000000-0000-4000-8000-00000000000a",
    tool_name="roll_dice",
    state=pb.RECEIPT_STATE_DONE,
    outcome=pb.OUTCOME_SUCCESS,
    result_json="[7]",
    tool_return="[7]",
    stdout="a\nb",
    limits_json='{"seconds": 180.0}',
    reserved_at=samples.NOON,
    block_edits=[pb.BlockEdit(label="human", value="Ada")],
    files=[pb.ExecutionFile(id="execfile-00000000-0000-4000-8000-00000000000b", name="a.csv", size=3)],
)
FILE = RECEIPT.files[0]


def on(backend: Backend, method: str, answer: Any) -> None:
    backend.on(f"ExecutionService.{method}", answer)


def asked(backend: Backend, method: str) -> list[Any]:
    return backend.requests(f"ExecutionService.{method}")


async def test_source_is_run_and_answered_as_a_tool_return(edge: Edge, backend: Backend) -> None:
    on(backend, "RunSource", lambda _: pb.RunSourceResponse(receipt=RECEIPT))
    body = {
        "source_code": "def f(): ...",
        "args": {"a": 1},
        "env_vars": {"K": "v"},
        "name": "f",
        "pip_requirements": [{"name": "rich", "version": "14"}],
        "args_json_schema": {"type": "object"},
    }
    answer = (await edge.http.post("/v1/tools/run", json=body)).json()
    assert answer["message_type"] == "tool_return_message"
    assert (answer["tool_return"], answer["status"], answer["stdout"], answer["stderr"]) == (
        "[7]",
        "success",
        ["a\nb"],
        [],
    )
    # As the reference has it: its ids belong to nothing.
    assert (answer["id"], answer["tool_call_id"], answer["name"]) == ("null", "null", "f")
    (request,) = asked(backend, "RunSource")
    assert (request.function_name, request.arguments_json, dict(request.environment)) == ("f", '{"a":1}', {"K": "v"})
    assert json.loads(request.tool.pip_requirements_json) == [{"name": "rich", "version": "14"}]
    assert request.call_key.startswith("source/")


async def test_source_that_is_no_tool_is_refused(edge: Edge, backend: Backend) -> None:
    def refuse(_: Any) -> Any:
        raise InvalidArgument("line 1: invalid syntax", reason="TOOL_SOURCE_INVALID")

    on(backend, "RunSource", refuse)
    answer = await edge.http.post("/v1/tools/run", json={"source_code": "def", "args": {}})
    assert (answer.status_code, answer.json()) == (400, {"detail": "line 1: invalid syntax"})

    def unavailable(_: Any) -> Any:
        raise FailedPrecondition("install bubblewrap", reason="SANDBOX_UNAVAILABLE")

    on(backend, "RunSource", unavailable)
    answer = await edge.http.post("/v1/tools/run", json={"source_code": "def"})
    assert (answer.status_code, answer.headers["x-should-retry"]) == (503, "false")


async def test_an_agents_tool_is_run_by_the_official_client(edge: Edge, backend: Backend) -> None:
    response = agent_service_pb2.RunAgentToolResponse(tool_return="[7]", result_json="[7]", stdout=["a"])
    backend.on("RunAgentTool", lambda _: response)
    agent_id = new_id("agent")
    result = await edge.sdk.agents.tools.run("roll_dice", agent_id=agent_id, args={"sides": 6})
    assert (result.status, result.func_return, result.stdout, result.agent_state) == ("success", [7], ["a"], None)
    (request,) = backend.requests("RunAgentTool")
    assert (request.agent_id, request.tool_name, request.arguments_json) == (agent_id, "roll_dice", '{"sides":6}')
    response.is_error, response.result_json, response.changed_memory = True, "", True
    response.tool_return = "no"
    response.stderr.append("it said no")
    result = await edge.sdk.agents.tools.run("roll_dice", agent_id=agent_id)
    assert (result.status, result.func_return, result.stderr) == ("error", None, ["it said no"])
    assert result.agent_state is not None
    assert result.agent_state.id == agent_id


async def test_a_repeated_run_is_the_same_call(edge: Edge, backend: Backend) -> None:
    refusals = 1

    def answer(_: Any) -> Any:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise PermissionDenied("wait for a person", reason="TOOL_APPROVAL_REQUIRED")
        return agent_service_pb2.RunAgentToolResponse(tool_return="7")

    backend.on("RunAgentTool", answer)
    url = f"/v1/agents/{new_id('agent')}/tools/roll/run"
    first = await edge.http.post(url, json={"args": {}})
    assert (first.status_code, first.json()["detail"]) == (403, "wait for a person")
    await edge.http.post(url, json={"args": {}}, headers={"x-stainless-retry-count": "1"})
    await edge.http.post(url, json={"args": {}})
    keys = [request.call_key for request in backend.requests("RunAgentTool")]
    assert keys[0] == keys[1] != keys[2]


async def test_receipts_are_listed_and_read(edge: Edge, backend: Backend) -> None:
    on(backend, "ListReceipts", lambda _: pb.ListReceiptsResponse(receipts=[RECEIPT], next_page_token="next"))
    on(backend, "GetReceipt", lambda _: pb.GetReceiptResponse(receipt=RECEIPT))
    on(backend, "CancelExecution", lambda _: pb.CancelExecutionResponse(receipt=RECEIPT))
    query = {"states": "done,started", "outcomes": "success", "since": "2026-01-01T00:00:00Z", "limit": "5000"}
    page = (await edge.http.get("/v1/executions", params=query)).json()
    assert page["next_page_token"] == "next"
    listed = page["executions"][0]
    assert (listed["call_key"], listed["state"], listed["outcome"]) == (KEY, "done", "success")
    assert "stdout" not in listed
    request = asked(backend, "ListReceipts")[0]
    assert list(request.states) == [pb.RECEIPT_STATE_DONE, pb.RECEIPT_STATE_STARTED]
    assert (request.page.page_size, request.since.seconds) == (1_000, 1_767_225_600)
    whole = (await edge.http.get(f"/v1/executions/{KEY}")).json()
    assert (whole["result"], whole["limits"], whole["stdout"]) == ([7], {"seconds": 180.0}, "a\nb")
    assert whole["block_edits"] == [{"label": "human", "value": "Ada"}]
    assert whole["files"][0]["name"] == "a.csv"
    assert (await edge.http.post(f"/v1/executions/{KEY}/cancel")).json() == whole
    assert [request.call_key for request in asked(backend, "CancelExecution")] == [KEY]
    assert (await edge.http.get("/v1/executions", params={"states": "gone"})).status_code == 422


async def test_a_stream_goes_on_where_a_lost_replica_left_it(edge: Edge, backend: Backend) -> None:
    async def serve(request: pb.StreamExecutionRequest) -> AsyncIterator[pb.StreamExecutionResponse]:
        after = request.after_sequence
        if after < 4:
            yield pb.StreamExecutionResponse(sequence=after + 1, stdout="one")
            raise Unavailable("the tool runner is stopping")
        yield pb.StreamExecutionResponse(sequence=after + 1, receipt=RECEIPT)

    on(backend, "StreamExecution", serve)
    answer = await edge.http.get(f"/v1/executions/{KEY}/stream", headers={"last-event-id": "2"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [dict(line.split(": ", 1) for line in block.splitlines()) for block in answer.text.strip().split("\n\n")]
    assert [(event["id"], event["event"]) for event in events] == [("3", "stdout"), ("4", "stdout"), ("5", "receipt")]
    assert json.loads(events[0]["data"]) == {"text": "one"}
    assert json.loads(events[-1]["data"])["call_key"] == KEY
    assert [request.after_sequence for request in asked(backend, "StreamExecution")] == [2, 3, 4]


async def test_a_stream_of_nothing_is_a_404_and_a_silent_one_is_kept_alive(
    start_gateway: Any, backend: Backend
) -> None:
    edge = await start_gateway(ping_interval=0.1)

    async def unknown(request: Any) -> AsyncIterator[pb.StreamExecutionResponse]:
        if request.call_key == KEY:
            raise NotFound("no call has this key", reason="CALL_NOT_FOUND")
        yield pb.StreamExecutionResponse()

    on(backend, "StreamExecution", unknown)
    assert (await edge.http.get(f"/v1/executions/{KEY}/stream")).status_code == 404

    gate = asyncio.Event()

    async def silent(_: Any) -> AsyncIterator[pb.StreamExecutionResponse]:
        await gate.wait()
        yield pb.StreamExecutionResponse(sequence=1, receipt=RECEIPT)

    on(backend, "StreamExecution", silent)
    async with edge.http.stream("GET", f"/v1/executions/{KEY}/stream") as answer:
        pieces = answer.aiter_text()
        text = await anext(pieces)
        gate.set()
        text += "".join([piece async for piece in pieces])
    assert text.startswith(": ping\n\n")
    assert text.rpartition("\n\nid: ")[2].startswith("1\nevent: receipt\n")


async def test_files_are_given_listed_fetched_and_erased(edge: Edge, backend: Backend) -> None:
    taken: list[Any] = []

    async def take(requests: AsyncIterator[pb.UploadFileRequest]) -> pb.UploadFileResponse:
        taken.extend([request.name or request.chunk async for request in requests])
        return pb.UploadFileResponse(file=FILE)

    async def give(_: Any) -> AsyncIterator[pb.StreamFileResponse]:
        yield pb.StreamFileResponse(file=FILE, chunk=b"1,")
        yield pb.StreamFileResponse(chunk=b"2")

    on(backend, "UploadFile", take)
    on(backend, "StreamFile", give)
    on(backend, "ListFiles", lambda _: pb.ListFilesResponse(files=[FILE]))
    on(backend, "DeleteFile", lambda _: pb.DeleteFileResponse())
    stored = await edge.http.post("/v1/executions/files", files={"file": ("a.csv", b"1,2")})
    assert (stored.json()["id"], taken) == (FILE.id, ["a.csv", b"1,2"])
    assert (await edge.http.get("/v1/executions/files", params={"call_key": KEY})).json()["files"][0]["id"] == FILE.id
    content = await edge.http.get(f"/v1/executions/files/{FILE.id}/content")
    assert (content.content, content.headers["content-type"]) == (b"1,2", "application/octet-stream")
    assert content.headers["content-disposition"] == "attachment; filename*=UTF-8''a.csv"
    assert (await edge.http.delete(f"/v1/executions/files/{FILE.id}")).status_code == 204
    assert (await edge.http.delete("/v1/executions/files/nonsense")).status_code == 422
