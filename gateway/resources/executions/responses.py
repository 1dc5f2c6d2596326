"""Receipts of calls and their files as REST: Loci's own, by the generic rule."""

from collections.abc import AsyncIterator
from typing import Any

import orjson

from gateway.peers import Peers, stream
from gateway.rest.client_streams import call_with_stream
from gateway.rest.convert import Rest, to_rest
from loci.tool.v1 import execution_service_pb2 as pb

_RESULT = frozenset({"result_json", "tool_return", "stdout", "stderr", "block_edits", "files"})
_UPLOAD_SECONDS = 600.0


def receipt_rest(receipt: pb.Receipt) -> Rest:
    """Returns a receipt with all that is told of it."""
    return to_rest(receipt, leave=frozenset({"result_json"})) | {"result": _value(receipt.result_json)}


def listed_rest(receipt: pb.Receipt) -> Rest:
    """Returns a receipt in a list: without what it returned and printed."""
    return to_rest(receipt, leave=_RESULT)


async def upload(peers: Peers, name: str, pieces: AsyncIterator[bytes]) -> pb.ExecutionFile:
    """Streams a file to the tool runner. Raises LociError."""
    call = peers.executions.UploadFile(timeout=_UPLOAD_SECONDS, wait_for_ready=True)
    parts = (pb.UploadFileRequest(chunk=piece) async for piece in pieces)
    file: pb.ExecutionFile = (await call_with_stream(call, [pb.UploadFileRequest(name=name)], parts)).file
    return file


async def content(peers: Peers, file_id: str) -> tuple[pb.ExecutionFile, bytes]:
    """Returns a file, 16 MiB at most, as a whole. Raises LociError."""
    file, chunks = pb.ExecutionFile(), []
    call = peers.executions.StreamFile(pb.StreamFileRequest(file_id=file_id), wait_for_ready=True)
    async with stream(call) as parts:
        async for part in parts:
            if part.HasField("file"):
                file = part.file
            chunks.append(part.chunk)
    return file, b"".join(chunks)


def _value(text: str) -> Any:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        # A number that ours cannot hold: the text is as good.
        return text
