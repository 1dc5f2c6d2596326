"""The process: its settings, its size, how it starts and stops."""

from __future__ import annotations

import asyncio
import base64
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import psutil
import pytest

from loci.llm.v1.chat_service_pb2 import GenerateRequest
from loci.llm.v1.chat_service_pb2_grpc import ChatServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, Signer, use_context
from services.common.keys import key_id, load_private_key, new_private_key, public_keys_of
from tests.conftest import DatabaseUrl
from tests.integration.catalogue import assert_keys_begin_with_tenant
from tests.integration.llm_gateway.harness import generation

ROOT = Path(__file__).parents[3]
PRIVATE_KEY = new_private_key()
IDLE_MEGABYTES = 75


@contextmanager
def process(environment: Mapping[str, str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`python -m services.llm_gateway` with nothing else in its environment."""
    command = [sys.executable, "-m", "services.llm_gateway", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=dict(environment), stderr=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()


def environment(url: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}",
        "LOCI_LISTEN": f"unix://{folder}/p.sock",
        "LOCI_LLM_GATEWAY_DATABASE_URL": url,
        "LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(PRIVATE_KEY),
        "LOCI_ENCRYPTION_KEY": base64.b64encode(bytes(32)).decode(),
        **more,
    }


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"LOCI_LISTEN": ""}, "LOCI_LISTEN is not set"),
        ({"LOCI_CONTEXT_PUBLIC_KEYS": "{}"}, "LOCI_CONTEXT_PUBLIC_KEYS"),
        ({"LOCI_ENCRYPTION_KEY": ""}, "LOCI_ENCRYPTION_KEY is not set"),
        ({"LOCI_MODEL_WINDOWS": "many"}, "LOCI_MODEL_WINDOWS is not JSON"),
        ({"LOCI_PROVIDERS": "many"}, "LOCI_PROVIDERS is wrong: it is not a JSON list"),
        ({"OPENAI_BASE_URL": "localhost"}, "OPENAI_BASE_URL is 'localhost'"),
        ({"LOCI_LLM_STALL_SECONDS": "0"}, "LOCI_LLM_STALL_SECONDS"),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path: Path, changes: dict[str, str], line: str) -> None:
    with process(environment("postgresql://nobody@/none", tmp_path) | changes) as started:
        _, errors = started.communicate(timeout=30)
    assert started.returncode == 2
    assert line in errors
    assert len(errors.strip().splitlines()) == 1


async def test_it_migrates_serves_stays_small_and_writes_its_account_when_stopped(
    fresh_database_url: DatabaseUrl, tmp_path: Path
) -> None:
    url = fresh_database_url("llm_gateway")
    settings = environment(url, tmp_path, OPENAI_API_KEY="sk-test", ANTHROPIC_API_KEY="sk-test")
    for _ in range(2):
        with process(settings, "migrate") as started:
            await asyncio.to_thread(started.wait, 30)
        assert started.returncode == 0
    await assert_keys_begin_with_tenant(url, "llm_gateway")
    private = load_private_key(PRIVATE_KEY)
    signer = Signer(private, key_id(private.public_key()))
    caller = signer.signed(CallContext(UUID(int=1), UUID(int=2), "user", ("llm_gateway",)))
    with process(settings) as started:
        async with make_channel(settings["LOCI_LISTEN"]) as channel:
            with use_context(caller):
                request = GenerateRequest(request=generation("loci/demo"))
                stub: Any = ChatServiceStub(channel)
                reply = await stub.Generate(request, wait_for_ready=True, timeout=30)
        assert reply.generation.message.parts
        memory = psutil.Process(started.pid).memory_info().rss / 2**20
        started.send_signal(signal.SIGTERM)
        await asyncio.to_thread(started.wait, 10)
    assert started.returncode == 0
    assert memory < IDLE_MEGABYTES
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT handle FROM llm_gateway.usage")
    await connection.close()
    assert [row["handle"] for row in rows] == ["loci/demo"]
