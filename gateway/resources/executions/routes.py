"""Calls of tools: their receipts, what they print, and the files they are given and make. Loci's own."""

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.invalid import EXAMPLE_UUID, InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import BINARY, OBJECT
from gateway.resources.executions.responses import content, listed_rest, receipt_rest, upload
from gateway.resources.executions.schemas import EXECUTION_FILE, EXECUTION_FILES, EXECUTIONS, RECEIPT
from gateway.resources.executions.streams import stream_response
from gateway.resources.folders.uploads import file_part
from gateway.rest import convert
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentFilter, Moment, Names, checked_id, split
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import execution_service_pb2 as pb
from services.common.errors import LociError
from services.common.fields import enum_numbers
from services.common.timestamps import timestamp

router = APIRouter(prefix="/executions", tags=["executions"])

_STATES = enum_numbers(pb.ReceiptState.DESCRIPTOR)
_OUTCOMES = enum_numbers(pb.Outcome.DESCRIPTOR)
_FILE_SCHEMA = {"type": "object", "required": ["file"], "properties": {"file": {"type": "string", "format": "binary"}}}
_UPLOAD_BODY = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FILE_SCHEMA}}}}

ExecutionFileId = Annotated[str, Path(examples=[f"execfile-{EXAMPLE_UUID}"]), checked_id("execfile")]
# Keys hold slashes: run/step/index.
CallKey = Annotated[str, Path(description="The key of a call, as receipts have it; it may hold slashes.")]


@router.get("")
@returns(EXECUTIONS)
@paged(50, names="limit page_token", empty={"executions": [], "next_page_token": None})
async def list_executions(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    agent_id: AgentFilter = None,
    run_id: str | None = None,
    tool_id: str | None = None,
    states: Names = None,
    outcomes: Names = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Response:
    """Returns a page of receipts, newest first, without results and output."""
    request = pb.ListReceiptsRequest(
        page=page,
        agent_id=agent_id or "",
        run_id=run_id or "",
        tool_id=tool_id or "",
        states=[pb.ReceiptState.ValueType(number) for number in _numbers("states", states, _STATES)],
        outcomes=[pb.Outcome.ValueType(number) for number in _numbers("outcomes", outcomes, _OUTCOMES)],
        since=timestamp(since),
        until=timestamp(until),
    )
    response = await loci.peers.call(loci.peers.executions.ListReceipts, request)
    executions = list(map(listed_rest, response.receipts))
    return json_response({"executions": executions, "next_page_token": response.next_page_token or None})


@router.post("/files", openapi_extra=_UPLOAD_BODY)
@returns(EXECUTION_FILE)
async def upload_file(
    request: Request,
    loci: Loci,
    name: Annotated[str | None, Query(description="Instead of the name that the file is sent under.")] = None,
) -> Response:
    """Keeps a file that calls may be given."""
    part = await file_part(request)
    try:
        file = await upload(loci.peers, name or part.name, part.pieces)
    except LociError:
        await part.rest()
        raise
    await part.rest()
    return json_response(convert.to_rest(file))


@router.get("/files")
@returns(EXECUTION_FILES)
@paged(50, names="limit page_token", empty={"files": [], "next_page_token": None})
async def list_files(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    call_key: str | None = None,
    agent_id: AgentFilter = None,
) -> Response:
    """Files given to calls, and made by them, newest first."""
    request = pb.ListFilesRequest(page=page, call_key=call_key or "", agent_id=agent_id or "")
    response = await loci.peers.call(loci.peers.executions.ListFiles, request)
    files = list(map(convert.to_rest, response.files))
    return json_response({"files": files, "next_page_token": response.next_page_token or None})


@router.get("/files/{file_id}/content")
@returns(BINARY, media_type="application/octet-stream")
async def retrieve_content(file_id: ExecutionFileId, loci: Loci) -> Response:
    """Returns the content of a file, to be saved: tools may have written anything into it."""
    file, data = await content(loci.peers, file_id)
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(file.name.rpartition('/')[2], safe='')}",
        "x-content-type-options": "nosniff",
    }
    return Response(data, media_type="application/octet-stream", headers=headers)


@router.delete("/files/{file_id}", status_code=204)
@returns(status=204)
async def delete_file(file_id: ExecutionFileId, loci: Loci) -> Response:
    """Erases a file."""
    await loci.peers.call(loci.peers.executions.DeleteFile, pb.DeleteFileRequest(file_id=file_id))
    return Response(status_code=204)


@router.get("/{call_key:path}/stream")
@returns(event=OBJECT)
async def stream_execution(
    call_key: CallKey, loci: Loci, last_event_id: Annotated[str | None, Header()] = None, after: int = 0
) -> Response:
    """Streams what a call prints, then its receipt. `Last-Event-ID` or `after`: go on after this number."""
    last_number = last_event_id if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else None
    start = min(max(0, after if last_number is None else int(last_number[:18])), 2**62)
    ping, window = loci.settings.ping_interval, loci.settings.reattach_window
    return await stream_response(loci.peers, call_key, start, ping=ping, window=window)


@router.post("/{call_key:path}/cancel")
@returns(RECEIPT)
async def cancel_execution(call_key: CallKey, loci: Loci) -> Response:
    """Kills a call that runs; one that has ended stays as it is."""
    request = pb.CancelExecutionRequest(call_key=call_key)
    return json_response(receipt_rest((await loci.peers.call(loci.peers.executions.CancelExecution, request)).receipt))


@router.get("/{call_key:path}")
@returns(RECEIPT)
async def retrieve_execution(call_key: CallKey, loci: Loci) -> Response:
    """Returns the receipt of a call."""
    request = pb.GetReceiptRequest(call_key=call_key)
    return json_response(receipt_rest((await loci.peers.call(loci.peers.executions.GetReceipt, request)).receipt))


def _numbers(parameter: str, names: list[str] | None, known: Mapping[str, int]) -> list[int]:
    numbers = []
    for name in split(names):
        if name not in known:
            sentence = f"`{parameter}`: {name[:80]!r} is not one of {', '.join(known)}"
            raise InvalidRequest(sentence, "query", parameter)
        numbers.append(known[name])
    return numbers
