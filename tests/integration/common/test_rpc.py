"""Servers and channels over real sockets: who is let in, what a failure looks like, what travels along."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from services.common.channel import call_idempotent, make_channel
from services.common.context import CallContext, Verifier, current, time_remaining, use_context
from services.common.errors import (
    Aborted,
    Cancelled,
    FailedPrecondition,
    Internal,
    LociError,
    NotFound,
    ResourceExhausted,
    Unauthenticated,
    Unavailable,
    Unimplemented,
    from_rpc,
)
from services.common.server import make_server
from services.common.settings import SettingsError
from services.common.telemetry import current_trace_id
from tests.integration.common.echo import CALLER, NAME, SIGNER, Echo, EchoStub, add_echo, echo, echo_server
from tests.polling import until


@contextmanager
def fails(kind: type[LociError]) -> Iterator[list[LociError]]:
    caught: list[LociError] = []
    with pytest.raises(grpc.aio.AioRpcError) as error:
        yield caught
    caught.append(from_rpc(error.value))
    assert type(caught[0]) is kind


def raising(error: BaseException) -> Any:
    async def answer(request: bytes) -> bytes:
        raise error

    return answer


async def silent() -> Any:
    """Sends nothing: a call that is refused while it sends may end with an error of gRPC's own instead."""
    await asyncio.Event().wait()
    yield b""


async def once(message: bytes) -> Any:
    yield message


async def every_kind(stub: EchoStub) -> list[bytes]:
    return [
        await stub.Say(b"ab"),
        b"".join([part async for part in stub.StreamSay(b"ab")]),
        await stub.UploadSay(once(b"ab")),
        b"".join([part async for part in stub.StreamBoth(once(b"ab"))]),
    ]


async def test_every_kind_of_call_sees_the_callers_context(tmp_path: Path) -> None:
    seen: list[CallContext] = []

    async def answer(request: bytes) -> bytes:
        seen.append(current())
        return request

    caller = SIGNER.signed(CALLER)
    async with echo(tmp_path, Echo(answer)) as (stub, _):
        with use_context(caller):
            assert await every_kind(stub) == [b"ab"] * 4
    assert seen == [CALLER] * 5
    assert {context.token for context in seen} == {caller.token}


async def test_calls_at_the_same_time_see_their_own_context(tmp_path: Path) -> None:
    async def answer(request: bytes) -> bytes:
        await asyncio.sleep(0.01)
        run_id = current().run_id
        assert run_id is not None
        return run_id.bytes

    async def call(stub: EchoStub, number: int) -> bytes:
        with use_context(SIGNER.signed(replace(CALLER, run_id=UUID(int=number)))):
            (part,) = [part async for part in stub.StreamSay(b"a")]
            assert part == await stub.Say(b"")
            return bytes(part)

    async with echo(tmp_path, Echo(answer)) as (stub, _):
        answers = await asyncio.gather(*(call(stub, number) for number in range(1, 33)))
    assert answers == [UUID(int=number).bytes for number in range(1, 33)]


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (lambda: None, "CONTEXT_MISSING"),
        (lambda: b"nonsense", "CONTEXT_INVALID"),
        (lambda: SIGNER.sign(replace(CALLER, audience=("memory",))), "CONTEXT_WRONG_AUDIENCE"),
    ],
)
async def test_without_a_good_context_no_handler_runs(
    tmp_path: Path, token: Callable[[], bytes | None], reason: str
) -> None:
    value = token()  # now: a context lives for five minutes, a whole test run for longer
    metadata = [] if value is None else [("loci-context-bin", value)]
    async with echo(tmp_path, Echo(raising(AssertionError("a handler ran")))) as (stub, _):
        for call in (
            stub.Say(b"a", metadata=metadata),
            stub.StreamSay(b"a", metadata=metadata).read(),
            stub.UploadSay(silent(), metadata=metadata),
            stub.StreamBoth(silent(), metadata=metadata).read(),
        ):
            with fails(Unauthenticated) as caught:
                await call
            assert caught[0].reason == reason


async def test_an_expired_context_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, start = SIGNER.sign(CALLER), time.time()
    async with echo(tmp_path) as (stub, _):
        await stub.Say(b"a", metadata=[("loci-context-bin", token)])
        monkeypatch.setattr(time, "time", lambda: start + 400)
        with fails(Unauthenticated) as caught:
            await stub.Say(b"a", metadata=[("loci-context-bin", token)])
        assert caught[0].reason == "CONTEXT_EXPIRED"


async def test_health_and_reflection_need_no_context(tmp_path: Path) -> None:
    async with echo(tmp_path) as (_, channel):
        health: Any = health_pb2_grpc.HealthStub(channel)
        for name in ("", NAME):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflected: Any = channel
        stub: Any = reflection_pb2_grpc.ServerReflectionStub(reflected)
        request = reflection_pb2.ServerReflectionRequest(list_services="*")
        async for response in stub.ServerReflectionInfo(iter([request])):
            names = {service.name for service in response.list_services_response.service}
            assert {NAME, "grpc.health.v1.Health"} <= names


async def test_an_external_listener_authenticates_by_its_own_rule(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def authenticate(metadata: Any, method: str, peer: str) -> CallContext:
        assert method.endswith("/Say")
        assert peer.startswith("unix:")
        if ("authorization", "Bearer right") not in metadata:
            raise Unauthenticated("unknown API key", reason="API_KEY_INVALID")
        return SIGNER.signed(CALLER)

    async def answer(request: bytes) -> bytes:
        seen.append(current().token)
        return request

    options: dict[str, Any] = {"verifier": None, "edge_authenticate": authenticate}
    async with echo(tmp_path, Echo(answer), **options) as (stub, _):
        assert await stub.Say(b"a", metadata=[("authorization", "Bearer right")]) == b"a"
        with fails(Unauthenticated) as caught:
            await stub.Say(b"a", metadata=[("loci-context-bin", SIGNER.sign(CALLER))])
        assert caught[0].reason == "API_KEY_INVALID"
    assert seen == [SIGNER.sign(CALLER)]


@pytest.mark.parametrize(
    "call",
    [
        lambda stub: stub.Say(b"a"),
        lambda stub: stub.StreamSay(b"a").read(),
        lambda stub: stub.UploadSay(once(b"a")),
        lambda stub: stub.StreamBoth(once(b"a")).read(),
    ],
)
async def test_a_call_ends_when_its_caller_is_let_in_no_more(tmp_path: Path, call: Callable[[EchoStub], Any]) -> None:
    asked: list[str] = []
    ended = asyncio.Event()

    async def authenticate(metadata: Any, method: str, peer: str) -> CallContext:
        asked.append(method)
        if len(asked) == 2:
            raise Unavailable("the database is away")
        if len(asked) == 4:
            raise Unauthenticated("this key is not known", reason="CREDENTIAL_INVALID")
        return SIGNER.signed(CALLER)

    async def silence(request: bytes) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return request

    options: dict[str, Any] = {"verifier": None, "edge_authenticate": authenticate, "reauth_seconds": 0.01}
    async with echo(tmp_path, Echo(silence), **options) as (stub, _):
        with fails(Unauthenticated) as caught:
            await call(stub)
        assert ended.is_set()
    assert (caught[0].reason, len(asked)) == ("CREDENTIAL_INVALID", 4)


@pytest.mark.parametrize("options", [{"verifier": None}, {"edge_authenticate": lambda metadata, method, peer: None}])
async def test_a_server_knows_its_callers_in_exactly_one_way(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="either"):
        echo_server(f"unix://{tmp_path}/x.sock", **options)


async def test_errors_arrive_as_they_were_raised(tmp_path: Path) -> None:
    error = FailedPrecondition(
        "the block \N{LATIN SMALL LETTER U WITH DIAERESIS} is read-only",
        reason="BLOCK_READ_ONLY",
        metadata={"label": "human"},
    )
    async with echo(tmp_path, Echo(raising(error))) as (stub, _):
        with use_context(SIGNER.signed(CALLER)):
            for call in (
                stub.Say(b"a"),
                stub.StreamSay(b"a").read(),
                stub.UploadSay(once(b"a")),
                stub.StreamBoth(once(b"a")).read(),
            ):
                with fails(FailedPrecondition) as caught:
                    await call
                back = caught[0]
                assert (back.message, back.reason, back.metadata) == (
                    error.message,
                    error.reason,
                    error.metadata,
                )


async def test_a_very_long_message_still_arrives_as_an_error(tmp_path: Path) -> None:
    error = NotFound(
        "\N{GRINNING FACE}" * 100_000,
        metadata={str(number): "\N{GRINNING FACE}" * 9_000 for number in range(5)},
    )
    async with echo(tmp_path, Echo(raising(error))) as (stub, _):
        with use_context(SIGNER.signed(CALLER)), fails(NotFound) as caught:
            await stub.Say(b"a")
    assert caught[0].message.endswith("more characters)")


async def test_a_bug_is_internal_with_a_trace_id_and_one_logged_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    traces: list[str] = []

    async def answer(request: bytes) -> bytes:
        traces.append(current_trace_id())
        raise ZeroDivisionError("secret details")

    async with echo(tmp_path, Echo(answer)) as (stub, _):
        with use_context(SIGNER.signed(CALLER)), fails(Internal) as caught:
            await stub.Say(b"a")
        with use_context(SIGNER.signed(CALLER)), fails(Internal):
            await stub.StreamSay(b"a").read()
    assert caught[0].message == f"internal error; trace {traces[0]}"
    assert (caught[0].reason, caught[0].metadata) == ("INTERNAL", {"trace_id": traces[0]})
    assert len(caplog.records) == 2
    assert all(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in caplog.records)


async def test_a_peers_error_passes_through(tmp_path: Path) -> None:
    conflict = Aborted("changed meanwhile", reason="VERSION_CONFLICT")
    async with echo(tmp_path, Echo(raising(conflict))) as (back, _):

        async def ask_back(request: bytes) -> bytes:
            answer: bytes = await back.Say(request)
            return answer

        async with echo(tmp_path, Echo(ask_back)) as (stub, _):
            with use_context(SIGNER.signed(CALLER)), fails(Aborted) as caught:
                await stub.Say(b"a")
    assert caught[0].reason == "VERSION_CONFLICT"


async def test_a_method_without_a_body_is_unimplemented(tmp_path: Path) -> None:
    async with echo(tmp_path, Echo(raising(NotImplementedError()))) as (stub, _):
        with use_context(SIGNER.signed(CALLER)), fails(Unimplemented):
            await stub.Say(b"a")


async def test_cancelled_work_is_answered_but_a_cancelled_call_is_not(tmp_path: Path) -> None:
    """A handler that awaits a task which someone else cancels must not leave its caller without an answer."""
    async with echo(tmp_path, Echo(raising(asyncio.CancelledError()))) as (stub, _):
        with use_context(SIGNER.signed(CALLER)), fails(Cancelled) as caught:
            await stub.Say(b"a", timeout=30)
    assert "waited for" in caught[0].message

    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(request: bytes) -> bytes:
        started.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return request

    async with echo(tmp_path, Echo(wait)) as (stub, _):
        with use_context(SIGNER.signed(CALLER)):
            call = stub.Say(b"a")
            await asyncio.wait_for(started.wait(), 20)
            call.cancel()
            await asyncio.wait_for(cancelled.wait(), 20)


async def test_when_the_caller_of_a_stream_goes_away_the_handler_ends_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for pause, size in ((30.0, 1), (0.0, 1_000_000)):

        async def big(request: bytes, size: int = size) -> bytes:
            return request * size

        servicer = Echo(big, pause=pause)
        async with echo(tmp_path, servicer) as (stub, _):
            with use_context(SIGNER.signed(CALLER)):
                call = stub.StreamSay(b"a" * 200)
                await call.read()
                assert not servicer.ended.is_set()
                call.cancel()
                await asyncio.wait_for(servicer.ended.wait(), 20)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_the_time_left_bounds_further_calls(tmp_path: Path) -> None:
    seen: list[float | None] = []

    async def note(request: bytes) -> bytes:
        seen.append(time_remaining())
        return request

    async with echo(tmp_path, Echo(note)) as (back, _):

        async def ask_back(request: bytes) -> bytes:
            await back.Say(b"inherited")
            await back.Say(b"its own", timeout=300)
            with use_context(current()):
                await back.Say(b"outlives the call")
            return request

        async with echo(tmp_path, Echo(ask_back)) as (stub, _):
            with use_context(SIGNER.signed(CALLER)):
                await stub.Say(b"a", timeout=60)
                await stub.Say(b"a")
    near = [pytest.approx(60, abs=20), pytest.approx(300, abs=20), None, None, pytest.approx(300, abs=20), None]
    assert seen == near


async def test_an_exhausted_deadline_ends_the_call(tmp_path: Path) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    async def slow(request: bytes) -> bytes:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return request

    async with echo(tmp_path, Echo(slow)) as (stub, channel):
        await channel.channel_ready()
        with use_context(SIGNER.signed(CALLER)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Say(b"a", timeout=0.5)
            assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            # A machine that was away for all that time never began.
            await until(lambda: ended.is_set() or not started.is_set())


async def test_big_messages_pass_and_bigger_ones_are_refused(tmp_path: Path) -> None:
    async with echo(tmp_path) as (stub, _):
        with use_context(SIGNER.signed(CALLER)):
            assert len(await stub.Say(b"x" * (43 * 1024 * 1024))) == 43 * 1024 * 1024
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Say(b"x" * (45 * 1024 * 1024))
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_an_answer_that_is_too_big_is_said_to_be_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def grow(request: bytes) -> bytes:
        return request * 1_000_000

    async with echo(tmp_path, Echo(grow)) as (stub, _):
        with use_context(SIGNER.signed(CALLER)):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Say(b"x" * 47)
            failure = from_rpc(caught.value)
            assert (type(failure), failure.reason) == (ResourceExhausted, "RESOURCE_EXHAUSTED")
            assert "ask for less" in failure.message
    assert caplog.records == []


async def test_tcp_works_alike_and_reports_its_port() -> None:
    server = echo_server("127.0.0.1:0")
    await server.start()
    host, _, port = server.address.rpartition(":")
    assert host == "127.0.0.1"
    channel = make_channel(f"dns:///127.0.0.1:{port}")
    try:
        with use_context(SIGNER.signed(CALLER)):
            assert await every_kind(EchoStub(channel)) == [b"ab"] * 4
    finally:
        await channel.close()
        await server.stop(0)


async def test_a_channel_tells_its_state_and_closes(tmp_path: Path) -> None:
    server = echo_server(f"unix://{tmp_path}/echo.sock")
    await server.start()
    async with make_channel(server.address) as channel:
        assert channel.get_state() is grpc.ChannelConnectivity.IDLE
        await asyncio.wait_for(channel.channel_ready(), 20)
        assert channel.get_state() is grpc.ChannelConnectivity.READY
        await server.stop(0)
        await asyncio.wait_for(channel.wait_for_state_change(grpc.ChannelConnectivity.READY), 20)
    with pytest.raises(grpc.aio.UsageError):
        await EchoStub(channel).Say(b"a")


async def test_an_address_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    taken = echo_server("127.0.0.1:0")
    for address in (
        taken.address,
        "192.0.2.1:50051",
        f"unix://{tmp_path}/{'x' * 120}.sock",
        f"unix://{tmp_path}/missing/folder.sock",
    ):
        with pytest.raises(SettingsError, match="LOCI_LISTEN is") as caught:
            echo_server(address)
        assert "\n" not in str(caught.value)
    await taken.stop(0)


async def test_a_socket_left_behind_by_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert path.exists()
    server = echo_server(f"unix://{path}")
    await server.start()
    channel = make_channel(server.address)
    with use_context(SIGNER.signed(CALLER)):
        assert await EchoStub(channel).Say(b"a") == b"a"
    await channel.close()
    await server.stop(0)


async def test_an_idempotent_call_outlasts_a_restart(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/echo.sock"
    channel = make_channel(address)
    stub = EchoStub(channel)
    with use_context(SIGNER.signed(CALLER)):
        waiting = asyncio.create_task(call_idempotent(stub.Say, b"a", timeout=60))
        await asyncio.sleep(0.3)
        first = echo_server(address)
        await first.start()
        assert await waiting == b"a"
        await first.stop(0)
        again = asyncio.create_task(call_idempotent(stub.Say, b"b", timeout=60))
        await until(lambda: not (tmp_path / "echo.sock").exists())
        await asyncio.sleep(0.3)
        second = echo_server(address)
        await second.start()
        assert await asyncio.wait_for(again, 20) == b"b"
        await second.stop(0)
    await channel.close()


async def test_an_idempotent_call_repeats_only_what_was_unavailable(tmp_path: Path) -> None:
    calls: list[bytes] = []

    async def flaky(request: bytes) -> bytes:
        calls.append(request)
        if request == b"wrong":
            raise NotFound("no")
        if len(calls) < 3:
            raise Unavailable("not now")
        return b"done"

    async with echo(tmp_path, Echo(flaky)) as (stub, _):
        with use_context(SIGNER.signed(CALLER)):
            assert await call_idempotent(stub.Say, b"a", timeout=30) == b"done"
            assert len(calls) == 3
            with pytest.raises(NotFound):
                await call_idempotent(stub.Say, b"wrong", timeout=30)
            assert len(calls) == 4


async def test_an_idempotent_call_gives_up_in_time(tmp_path: Path) -> None:
    channel = make_channel(f"unix://{tmp_path}/nobody.sock")
    with use_context(SIGNER.signed(CALLER)):
        async with asyncio.timeout(20):
            with pytest.raises(LociError) as caught:
                await call_idempotent(EchoStub(channel).Say, b"a", timeout=0.5)
        assert caught.value.code in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
    await channel.close()


async def test_unguarded_registration_serves_nothing(tmp_path: Path) -> None:
    """Fails closed: an add-function that only knows the old way leaves its service without handlers."""

    def add_old(servicer: Echo, server: Any) -> None:
        class Half:
            add_generic_rpc_handlers = server.add_generic_rpc_handlers

            def add_registered_method_handlers(self, name: str, handlers: object) -> None:
                pass

        add_echo(servicer, Half())

    server = make_server(
        f"unix://{tmp_path}/echo.sock",
        servicers=[(add_old, Echo())],
        service_names=[NAME],
        audience="echo",
        verifier=Verifier({}),
    )
    await server.start()
    channel = make_channel(server.address)
    with fails(Unimplemented):
        await EchoStub(channel).Say(b"a")
    await channel.close()
    await server.stop(0)
