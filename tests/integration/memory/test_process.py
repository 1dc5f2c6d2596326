"""`python -m services.memory` beside a real llm gateway: settings, migration, health, embeddings, memory, signals."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from loci.memory.v1 import passage_service_pb2 as passage_pb
from loci.memory.v1.agent_memory_service_pb2_grpc import AgentMemoryServiceStub
from loci.memory.v1.passage_service_pb2_grpc import PassageServiceStub
from services.common.channel import call_idempotent, make_channel
from services.common.context import CallContext, Signer, use_context
from services.common.keys import load_private_key, new_private_key, public_keys_of
from tests.conftest import DatabaseUrl

KEY = new_private_key()
# 89 are used; sqlalchemy has 23 of them, grpc, asyncpg, telemetry some 10 each. RE2 (3 MB) comes with the first search.
IDLE_MEGABYTES = 92


def environment(service: str, url: str, folder: Path, **changes: str) -> dict[str, str]:
    """Settings of one service; a changed one that is empty counts as unset."""
    return {
        "PATH": os.environ["PATH"],
        "LOCI_LISTEN": f"unix://{folder}/{service}.sock",
        "LOCI_DATABASE_URL": url,
        "LOCI_LLM_GATEWAY_ADDR": f"unix://{folder}/llm_gateway.sock",
        "LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(KEY),
        "LOCI_CONTEXT_SIGNING_KEY": KEY,
        "LOCI_ENCRYPTION_KEY": base64.b64encode(bytes(32)).decode(),
        **changes,
    }


async def start(service: str, settings: dict[str, str], *arguments: str) -> Process:
    command = (sys.executable, "-m", f"services.{service}", *arguments)
    root = Path(__file__).parents[3]
    return await asyncio.create_subprocess_exec(*command, env=settings, cwd=root, stderr=PIPE)


async def finished(process: Process) -> tuple[int | None, str]:
    """Exit code and stderr."""
    try:
        _, errors = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, errors.decode()


@asynccontextmanager
async def running(service: str, url: str, folder: Path) -> AsyncIterator[Process]:
    """The migrated service, serving; ended by SIGTERM, which it must obey with exit code 0."""
    settings = environment(service, url, folder)
    code, errors = await finished(await start(service, settings, "migrate"))
    assert code == 0, errors
    process = await start(service, settings)
    try:
        async with make_channel(settings["LOCI_LISTEN"]) as channel:
            request = health_pb2.HealthCheckRequest()
            health: Any = health_pb2_grpc.HealthStub(channel)
            response = await call_idempotent(health.Check, request, timeout=20)
            assert response.status == health_pb2.HealthCheckResponse.SERVING
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        code, errors = await finished(process)
    assert code == 0, errors


async def test_a_passage_is_embedded_by_the_real_gateway_and_found(database_url: DatabaseUrl, tmp_path: Path) -> None:
    signer = Signer(load_private_key(KEY), next(iter(orjson.loads(public_keys_of(KEY)))))
    caller = signer.signed(CallContext(uuid4(), UUID(int=2), "user", ("memory", "llm_gateway")))
    async with (
        running("llm_gateway", database_url("llm_gateway"), tmp_path),
        running("memory", database_url("memory"), tmp_path) as process,
        make_channel(f"unix://{tmp_path}/memory.sock") as channel,
    ):
        resident = psutil.Process(process.pid).memory_info().rss / 1e6
        assert resident < IDLE_MEGABYTES, f"{resident:.0f} MB"
        agents, passages, agent = AgentMemoryServiceStub(channel), PassageServiceStub(channel), f"agent-{uuid4()}"
        with use_context(caller):
            for number, text in enumerate(("My cat is called Tom.", "The train leaves at nine.")):
                answer = await agents.ApplyTool(
                    agent_pb.ApplyToolRequest(
                        call_key=f"k{number}",
                        agent_id=agent,
                        tool_name="archival_memory_insert",
                        arguments_json=orjson.dumps({"content": text}).decode(),
                        embedding="loci/hash",
                    )
                )
                assert not answer.is_error, answer
            request = passage_pb.SearchPassagesRequest(agent_id=agent, query="what is my cat called", top_k=1)
            [hit] = (await passages.SearchPassages(request)).hits
            memory = await agents.GetAgentMemory(agent_pb.GetAgentMemoryRequest(agent_id=agent))
    assert hit.passage.text == "My cat is called Tom."
    assert hit.HasField("vector_score")
    assert hit.HasField("text_score")
    assert [(archive.embedding, archive.dimensions > 0) for archive in memory.memory.archives] == [("loci/hash", True)]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"LOCI_LISTEN": ""}, "LOCI_LISTEN is not set"),
        ({"LOCI_DATABASE_URL": ""}, "LOCI_MEMORY_DATABASE_URL or LOCI_DATABASE_URL is not set"),
        ({"LOCI_LLM_GATEWAY_ADDR": ""}, "LOCI_LLM_GATEWAY_ADDR is not set"),
        ({"LOCI_CONTEXT_PUBLIC_KEYS": "{}"}, "LOCI_CONTEXT_PUBLIC_KEYS"),
        ({"LOCI_DATABASE_PGBOUNCER": "perhaps"}, "LOCI_DATABASE_PGBOUNCER is 'perhaps'"),
    ],
)
async def test_a_wrong_setting_is_one_line(
    database_url: DatabaseUrl, tmp_path: Path, changes: dict[str, str], named: str
) -> None:
    settings = environment("memory", database_url("memory"), tmp_path, **changes)
    code, errors = await finished(await start("memory", settings))
    assert code == 2
    assert named in errors
    assert errors.count("\n") == 1
