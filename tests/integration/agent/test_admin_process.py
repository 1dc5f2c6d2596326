"""The service as a process: its commands, both listeners, and what it says when a setting is wrong."""

import asyncio
import base64
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from loci.agent.v1 import agent_service_pb2 as wire
from loci.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from services.common.channel import make_channel
from services.common.keys import key_id
from tests.conftest import DatabaseUrl
from tests.integration.agent.admin_world import AdminWorld, admin_world

ROOT = Path(__file__).parents[3]


@pytest.fixture
def environment(fresh_database_url: DatabaseUrl, tmp_path: Path) -> dict[str, str]:
    """All that the service must be told; its peers are not there."""
    key = Ed25519PrivateKey.generate()
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    peers = {name: f"unix://{tmp_path}/{name}" for name in ("memory", "llm_gateway", "tool_runner")}
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}",
        "LOCI_LISTEN": f"unix://{tmp_path}/agent",
        "LOCI_DATABASE_URL": fresh_database_url("agent"),
        **{f"LOCI_{name.upper()}_ADDR": address for name, address in peers.items()},
        "LOCI_CONTEXT_SIGNING_KEY": base64.b64encode(key.private_bytes_raw()).decode(),
        "LOCI_CONTEXT_PUBLIC_KEYS": f'{{"{key_id(key.public_key())}": "{public}"}}',
    }


async def test_migrate_then_serve_then_stop(environment: dict[str, str]) -> None:
    port = _free_port()
    external = {"LOCI_AGENT_EXTERNAL_LISTEN": f"127.0.0.1:{port}", "LETTA_SERVER_PASSWORD": "secret"}
    for _ in range(2):
        assert await _ended(await _start(environment, "migrate")) == (0, "")
    process = await _start(environment | external)
    for address in (environment["LOCI_LISTEN"], f"dns:///127.0.0.1:{port}"):
        async with _channel(address) as channel:
            await _serving(channel)
            assert "loci.agent.v1.AgentService" in await _services(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await AgentServiceStub(channel).ListAgents(wire.ListAgentsRequest(), timeout=20)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    async with _channel(f"dns:///127.0.0.1:{port}") as channel:
        request = wire.ListAgentsRequest(omit_relations=True)
        found = await AgentServiceStub(channel).ListAgents(request, metadata=[("authorization", "Bearer secret")])
        assert list(found.agents) == []
    process.send_signal(signal.SIGTERM)
    code, complaints = await _ended(process)
    assert code == 0, complaints


async def test_the_secret_of_callbacks_is_printed(environment: dict[str, str]) -> None:
    lines = []
    for more in ({}, {}, {"LOCI_WEBHOOK_SECRET": "hush"}):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "services.agent", "webhook-secret", env=environment | more, stdout=PIPE
        )
        output, _ = await process.communicate()
        lines.append(output.decode())
    assert lines[0] == lines[1] != lines[2] == "hush\n"
    assert lines[0].startswith("whsec_")


@pytest.mark.parametrize(
    ("changes", "arguments", "said"),
    [
        ({"LOCI_LISTEN": ""}, [], "LOCI_LISTEN is not set"),
        ({"LOCI_AGENT_EXTERNAL_LISTEN": "0.0.0.0:1"}, [], "LETTA_SERVER_PASSWORD"),
        ({"LOCI_DATABASE_URL": ""}, ["migrate"], "LOCI_DATABASE_URL"),
        ({}, ["dance"], "usage:"),
    ],
)
async def test_one_line_says_what_is_wrong(
    environment: dict[str, str], changes: dict[str, str], arguments: list[str], said: str
) -> None:
    code, complaints = await _ended(await _start(environment | changes, *arguments))
    assert code == 2
    assert said in complaints
    assert len(complaints.splitlines()) == 1


@pytest.fixture
async def world(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """The service with an external listener, in this process."""
    async with admin_world(agent_url, tmp_path, "secret", external=True) as made:
        yield made


async def test_external_callers_reach_every_service_behind(world: AdminWorld) -> None:
    async with _channel(world.address) as channel:
        stub, metadata = AgentServiceStub(channel), [("authorization", "Bearer secret")]
        made = await stub.CreateAgent(wire.CreateAgentRequest(), metadata=metadata)
        assert len(made.agent.tools) == 3
        found = await stub.GetAgent(wire.GetAgentRequest(agent_id=made.agent.id), metadata=metadata)
        assert found.agent == made.agent
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.GetAgent(wire.GetAgentRequest(agent_id=made.agent.id))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert (await world.get(made.agent.id)).id == made.agent.id


async def _start(environment: dict[str, str], *arguments: str) -> Process:
    command = [sys.executable, "-P", "-m", "services.agent", *arguments]
    return await asyncio.create_subprocess_exec(*command, env=environment, cwd="/", stderr=PIPE)


async def _ended(process: Process) -> tuple[int | None, str]:
    async with asyncio.timeout(60):
        _, complaints = await process.communicate()
    lines = [line for line in complaints.decode().splitlines() if '"level":"info"' not in line.replace(" ", "").lower()]
    return process.returncode, "\n".join(lines)


@asynccontextmanager
async def _channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    channel = make_channel(address)
    try:
        yield channel
    finally:
        await channel.close()


async def _serving(channel: grpc.aio.Channel) -> None:
    health: Any = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service="loci.agent.v1.MessageService")
    answer = await health.Check(request, timeout=20, wait_for_ready=True)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def _services(channel: grpc.aio.Channel) -> list[str]:
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type]
    answers = stub.ServerReflectionInfo(iter([request]))
    async for answer in answers:
        return [service.name for service in answer.list_services_response.service]
    return []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
