"""The gateway as a process: it starts or says in one line why not, and stops when told."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from gateway.server.http_server import HttpServer
from loci.agent.v1 import message_service_pb2
from services.common.keys import new_private_key, public_keys_of
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Listener, running
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_turns import HELLO, MESSAGES, frames

SERVICES = ("AGENT", "MEMORY", "LLM_GATEWAY", "TOOL_RUNNER")


async def start(inherited: int | None = None, /, **variables: str) -> Process:
    """A gateway with these settings besides the required ones; an empty value takes one away."""
    settings = {f"LOCI_{name}_ADDR": "unix:///nowhere.sock" for name in SERVICES}
    key = new_private_key()
    settings |= {"LOCI_CONTEXT_SIGNING_KEY": key, "LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(key), **variables}
    environment = {**os.environ, **settings}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        stderr=PIPE,
        env=environment,
        pass_fds=() if inherited is None else (inherited,),
    )


async def outcome(process: Process) -> tuple[int, str]:
    """Exit status and stderr."""
    async with asyncio.timeout(60):
        _, written = await process.communicate()
    assert process.returncode is not None
    return process.returncode, written.decode()


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"LOCI_MEMORY_ADDR": ""}, "LOCI_MEMORY_ADDR"),
        ({"LOCI_CONTEXT_SIGNING_KEY": "nonsense"}, "LOCI_CONTEXT_SIGNING_KEY"),
        ({"LOCI_HOST": "0.0.0.0"}, "LETTA_SERVER_PASSWORD"),
    ],
)
async def test_a_wrong_setting_is_one_line(variables: dict[str, str], says: str) -> None:
    status, written = await outcome(await start(**variables))
    assert (status, written.count("\n")) == (2, 1)
    assert says in written


async def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        status, written = await outcome(await start(LOCI_PORT=str(port)))
    assert (status, written.count("\n")) == (2, 1)
    assert f"127.0.0.1:{port}" in written
    assert "LOCI_PORT" in written


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_stops_when_told(number: signal.Signals) -> None:
    # Whoever connects before the gateway has started waits in the line of the socket that it inherits.
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port, inherited = listening.getsockname()[1], listening.fileno()
        process = await start(inherited, LOCI_LISTEN_FD=str(inherited))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
        assert (await http.get("/v1/health")).status_code == 200
    process.send_signal(number)
    status, written = await outcome(process)
    assert status == 0
    assert "Traceback" not in written


def test_what_is_written_in_pieces_is_sent_at_once() -> None:
    """Not 40 ms later, when the client has acknowledged the piece before."""

    async def application(*_: Any) -> None:
        raise AssertionError("nobody asks")

    server = HttpServer(application, "127.0.0.1", 0)
    with (
        server._socket as listening,
        socket.create_connection(("127.0.0.1", server.port)),
        listening.accept()[0] as one,
    ):
        assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_a_stream_that_is_cut_by_the_stop_ends_properly(backend: Backend) -> None:
    """The client learns where to go on; the run itself is not touched."""

    async def endless(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=samples.attached())
        await asyncio.sleep(60)

    backend.on("StreamMessages", endless)
    listener = Listener(grace=0)
    async with (
        running(backend, listener) as edge,
        edge.http.stream("POST", MESSAGES, json=HELLO | {"streaming": True}) as answer,
    ):
        pieces = answer.aiter_text()
        begun = await anext(pieces)
        await listener.stop()
        _, stop, (name, error), done = frames(begun + "".join([piece async for piece in pieces]))
    assert (stop["stop_reason"], name, error["error_type"], done) == ("error", "error", "stream_incomplete", "[DONE]")
    assert backend.requests("CancelRuns") == []
