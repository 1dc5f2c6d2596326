"""Calls that answer with a stream: read to the end, left early, failed."""

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from gateway.peers import stream
from gateway.resources.executions.streams import stream_response
from gateway.resources.mcp_servers.responses import connection
from gateway.vendors.relay import Relay
from loci.llm.v1 import forward_service_pb2
from loci.tool.v1 import execution_service_pb2, mcp_service_pb2
from services.common.errors import LociError


class FakeCall:
    """A call that answers with the values, and fails where one is an error; `None` lets its reader wait for ever."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.is_cancelled = False
        self.asked = asyncio.Event()

    async def read(self) -> Any:
        self.asked.set()
        if not self._answers:
            return grpc.aio.EOF
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return await asyncio.Event().wait() if answer is None else answer

    def cancel(self) -> None:
        self.is_cancelled = True


def _lost() -> grpc.RpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing, nothing, details="gone")


async def _read(call: Any, most: int = 9) -> list[Any]:
    answers = []
    async with stream(call) as each:
        async for answer in each:
            answers.append(answer)
            if len(answers) == most:
                break
    return answers


@pytest.mark.parametrize(("most", "answers"), [(9, [1, 2, 3]), (1, [1])])
async def test_a_call_ends_with_its_reading(most: int, answers: list[int]) -> None:
    call = FakeCall(1, 2, 3)
    assert await _read(call, most) == answers
    assert call.is_cancelled


async def test_a_failure_is_an_error_of_ours() -> None:
    call = FakeCall(1, _lost())
    with pytest.raises(LociError, match="gone"):
        await _read(call)
    assert call.is_cancelled


async def test_a_reader_that_is_cancelled_ends_the_call() -> None:
    call = FakeCall(1, None)
    reader = asyncio.create_task(_read(call))
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert call.is_cancelled


@pytest.mark.parametrize("begun", [False, True])
async def test_who_leaves_a_silent_execution_ends_its_call(begun: bool) -> None:
    answers = [execution_service_pb2.StreamExecutionResponse(sequence=1, stdout="one")] if begun else []
    call, read = FakeCall(*answers, None), asyncio.Event()
    peers: Any = SimpleNamespace(executions=SimpleNamespace(StreamExecution=lambda request, **_: call))

    async def follow() -> None:
        response: Any = await stream_response(peers, "call", 0, ping=9.0, window=1.0)
        async for _ in response.body_iterator:
            read.set()

    reader = asyncio.create_task(follow())
    await (read.wait() if begun else call.asked.wait())
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.sleep(0)
    assert call.is_cancelled


async def _connect(call: FakeCall) -> list[bytes]:
    peers = SimpleNamespace(mcp_servers=SimpleNamespace(StreamConnect=lambda request, **_: call))
    loci: Any = SimpleNamespace(peers=peers)
    return [each async for each in connection(loci, mcp_service_pb2.StreamConnectRequest())]


async def test_a_connection_that_fails_says_so_once_it_has_begun() -> None:
    begun = mcp_service_pb2.StreamConnectResponse(message="connecting")
    frames = await _connect(FakeCall(begun, _lost()))
    assert [b"connecting" in frames[0], b'"event":"error"' in frames[1], len(frames)] == [True, True, 2]
    with pytest.raises(LociError, match="gone"):
        await _connect(FakeCall(_lost()))


def _forward(**event: Any) -> forward_service_pb2.ForwardResponse:
    return forward_service_pb2.ForwardResponse(**event)


HEAD = _forward(head=forward_service_pb2.ForwardHead(status=200, headers={"content-type": "text/event-stream"}))


@pytest.mark.parametrize(
    ("answers", "body"),
    [
        ([HEAD, _forward(chunk=b"one"), _forward(end=forward_service_pb2.ForwardEnd(text="one"))], b"one"),
        ([HEAD, _forward(chunk=b"one"), _lost()], b"oneevent: error\n"),
        ([HEAD, _forward(chunk=b"one")], b"oneevent: error\n"),
    ],
)
async def test_a_vendors_answer_is_passed_on(answers: list[Any], body: bytes) -> None:
    call, sent = FakeCall(*answers), []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    peers: Any = SimpleNamespace(forwards=SimpleNamespace(Forward=lambda request, **_: call))
    await Relay(peers, forward_service_pb2.ForwardRequest())({"type": "http"}, receive, send)
    assert b"".join(message.get("body", b"") for message in sent).startswith(body)
    assert (sent[0]["status"], sent[-1]["more_body"], call.is_cancelled) == (200, False, True)
