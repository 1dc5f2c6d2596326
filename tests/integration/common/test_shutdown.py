"""serve_until_signal: what happens between the signal and the end.

Its handlers are called as the loop would call them: a signal to the process that runs the tests would end that, were it
a moment too early or too late. Each service's test_process.py sends real ones.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.common import server
from services.common.channel import make_channel
from services.common.context import use_context
from services.common.server import serve_until_signal
from tests.integration.common.echo import CALLER, NAME, SIGNER, Echo, EchoStub, echo_server

Send = Callable[[signal.Signals], None]


@pytest.fixture
async def send(monkeypatch: pytest.MonkeyPatch) -> Send:
    """What the loop would do at a signal; KeyError where nobody handles it."""
    handlers: dict[int, Callable[[], object]] = {}
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "add_signal_handler", handlers.__setitem__)
    monkeypatch.setattr(loop, "remove_signal_handler", handlers.pop)

    def send_to_loop(number: signal.Signals) -> None:
        loop.call_soon(handlers[number])

    return send_to_loop


@asynccontextmanager
async def running(
    folder: Path, servicer: Echo, **options: Any
) -> AsyncIterator[tuple[asyncio.Task[None], grpc.aio.Channel, EchoStub]]:
    """serve_until_signal in a task, answering; the test ends it with a signal."""
    address = f"unix://{folder}/echo.sock"
    serving = asyncio.create_task(serve_until_signal(echo_server(address, servicer), **options))
    channel = make_channel(address)
    try:
        health: Any = health_pb2_grpc.HealthStub(channel)
        await health.Check(health_pb2.HealthCheckRequest(service=NAME), wait_for_ready=True, timeout=30)
        with use_context(SIGNER.signed(CALLER)):
            yield serving, channel, EchoStub(channel)
    finally:
        await channel.close()
        if not serving.done():
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_calls_in_flight_end_well_and_everything_stops_in_order(
    tmp_path: Path, number: signal.Signals, send: Send
) -> None:
    events: list[str] = []
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def answer(request: bytes) -> bytes:
        begun.set()
        await go_on.wait()
        events.append("call ended")
        return request

    async def note(event: str) -> None:
        events.append(event)

    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            events.append("background ended")

    async def fails() -> None:
        events.append("stop 1")
        raise OSError("a part that fails to stop")

    options: dict[str, Any] = {
        "background": [background],
        "on_drain": [lambda: note("drain")],
        "on_stop": [fails, lambda: note("stop 2")],
        "grace": 60.0,
    }
    async with running(tmp_path, Echo(answer), **options) as (serving, channel, stub):
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(service=NAME))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        call = asyncio.ensure_future(stub.Say(b"a"))
        await begun.wait()
        send(number)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        go_on.set()
        assert await call == b"a"
        await asyncio.wait_for(serving, 30)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.Say(b"b")
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert events == ["drain", "call ended", "background ended", "stop 1", "stop 2"]


async def test_the_grace_is_bounded(tmp_path: Path, send: Send) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def answer(request: bytes) -> bytes:
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return request

    async with running(tmp_path, Echo(answer), grace=0.2) as (serving, _, stub):
        call = asyncio.ensure_future(stub.Say(b"a"))
        await begun.wait()
        send(signal.SIGTERM)
        with pytest.raises(grpc.aio.AioRpcError):
            await call
        await asyncio.wait_for(serving, 30)
        await asyncio.wait_for(cancelled.wait(), 20)


async def test_a_hook_that_hangs_does_not_keep_the_process_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, send: Send
) -> None:
    monkeypatch.setattr(server, "HOOK_SECONDS", 0.1)
    last = asyncio.Event()

    async def stop() -> None:
        last.set()

    async with running(tmp_path, Echo(), on_stop=[asyncio.Event().wait, stop]) as (serving, _, _):
        send(signal.SIGTERM)
        await asyncio.wait_for(serving, 30)
        assert last.is_set()


async def test_a_second_signal_cuts_the_grace(tmp_path: Path, send: Send) -> None:
    begun = asyncio.Event()

    async def answer(request: bytes) -> bytes:
        begun.set()
        await asyncio.sleep(60)
        return request

    async with running(tmp_path, Echo(answer), grace=60) as (serving, _, stub):
        call = asyncio.ensure_future(stub.Say(b"a"))
        await begun.wait()
        send(signal.SIGTERM)
        await asyncio.sleep(0.2)
        assert not serving.done()
        send(signal.SIGTERM)
        await asyncio.wait_for(serving, 30)
        with pytest.raises(grpc.aio.AioRpcError):
            await call


async def test_a_background_task_that_fails_stops_the_process_and_one_that_ends_does_not(
    tmp_path: Path,
) -> None:
    fail = asyncio.Event()

    async def ends() -> None:
        pass

    async def fails() -> None:
        await fail.wait()
        raise RuntimeError("lost the database")

    async with running(tmp_path, Echo(), background=[ends, fails]) as (serving, _, stub):
        await asyncio.sleep(0.1)
        assert await stub.Say(b"a") == b"a"
        fail.set()
        with pytest.raises(RuntimeError, match="lost the database"):
            await asyncio.wait_for(serving, 30)
