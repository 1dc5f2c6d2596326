"""The service as its own process, with a real sandbox: what a user's tool meets, and kill -9 in the middle of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import grpc
import psutil
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc_health.v1 import health_pb2, health_pb2_grpc

from loci.tool.v1 import execution_service_pb2 as execution_pb
from services.common.channel import make_channel
from services.common.keys import public_keys_of
from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.bubblewrap.source import create
from tests.integration.tool_runner.harness import ENCRYPTION_KEY, PRIVATE_KEY, ROLL, Client, client
from tests.polling import until

_ROOT = Path(__file__).resolve().parents[3]


def tool(body: str, *, imports: str = "") -> str:
    """The source of a tool `act` without arguments."""
    return f'{imports}\ndef act():\n    """Act."""\n    {body}\n'


@pytest.fixture
async def bubblewrap() -> None:
    """Skips where bubblewrap does not work."""
    try:
        await create()
    except SandboxUnavailable as error:
        pytest.skip(str(error))


@asynccontextmanager
async def process(url: str, address: str, **environment: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`python -m services.tool_runner`, serving."""
    settings = {
        "PATH": os.environ["PATH"],
        "LOCI_LISTEN": address,
        "LOCI_DATABASE_URL": url,
        "LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(PRIVATE_KEY),
        "LOCI_ENCRYPTION_KEY": b64encode(ENCRYPTION_KEY).decode(),
        "LOCI_SANDBOX": "bubblewrap",
    }
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.tool_runner"), cwd=_ROOT, env=settings | environment
    )
    try:
        async with make_channel(address) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            await health.Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
        yield service
    finally:
        if service.returncode is None:
            service.send_signal(signal.SIGTERM)
            async with asyncio.timeout(60):
                await service.wait()


def resident(pid: int) -> int:
    """Megabytes of one process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


@pytest.mark.usefixtures("bubblewrap")
async def test_a_users_tools_in_a_real_sandbox(tool_url: str, tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/t.sock"
    async with process(tool_url, address) as service, client(address) as runner:
        assert resident(service.pid) < 90  # of which httpx is 12, and 8 more where packages that it finds are installed
        roll = await runner.upsert(ROLL)
        receipt = await runner.call(roll.id, num_sides=1)
        assert (receipt.tool_return, receipt.sandbox) == ("1", "bubblewrap")
        await _check_failures(runner)
        receipt = await runner.call(roll.id)
        assert receipt.outcome == execution_pb.OUTCOME_SUCCESS
        assert 1 <= int(receipt.result_json) <= 6


async def _check_failures(runner: Client) -> None:
    cases = [
        ("raise ValueError('no')", execution_pb.OUTCOME_RAISED, "Error executing function act: ValueError: no"),
        ("while True: pass", execution_pb.OUTCOME_TIMEOUT, "no result after 1 s"),
        ("x = []\n    while True: x.append(bytearray(10**7))", execution_pb.OUTCOME_OUT_OF_MEMORY, "memory"),
        ("for _ in range(100): print('x' * 10**6)", execution_pb.OUTCOME_BAD_OUTPUT, "printed more than"),
        ("return float('nan')", execution_pb.OUTCOME_SUCCESS, "NaN"),
        ("import os; os._exit(3)", execution_pb.OUTCOME_KILLED, "exit code 3"),
        ("import socket; socket.create_connection(('1.1.1.1', 53))", execution_pb.OUTCOME_RAISED, "unreachable"),
    ]
    for body, outcome, text in cases:
        made = await runner.upsert(tool(body))
        request = execution_pb.ExecuteToolRequest(
            call_key=f"call-{uuid4()}", tool_id=made.id, timeout=Duration(seconds=1 if "while True: p" in body else 30)
        )
        receipt = (await runner.execution.ExecuteTool(request)).receipt
        assert receipt.outcome == outcome, body
        assert text in receipt.tool_return, body


@pytest.mark.usefixtures("bubblewrap")
async def test_kill_9_in_the_middle_of_a_call(tool_url: str, tmp_path: Path) -> None:
    organization_id = uuid4()
    address = f"unix://{tmp_path}/t.sock"
    async with process(tool_url, address) as service, client(address, organization_id) as runner:
        slow = await runner.upsert(tool("print('begun', flush=True); time.sleep(60)", imports="import time"))
        again = await runner.upsert(ROLL, idempotent=True)
        calls = [asyncio.ensure_future(runner.call(slow.id, key="slow"))]
        await _until_begun(runner, "slow")
        inside = _sandboxes(service)
        assert inside
        service.kill()
        await service.wait()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert isinstance(outcomes[0], Exception)
        await until(lambda: not any(map(_runs, inside)))
    after = f"unix://{tmp_path}/after.sock"
    async with process(tool_url, after), client(after, organization_id) as runner:
        receipt = await runner.call(slow.id, key="slow")
        assert receipt.state == execution_pb.RECEIPT_STATE_UNKNOWN
        assert "was not run again" in receipt.tool_return
        assert (await runner.call(again.id, num_sides=1)).tool_return == "1"


async def _until_begun(runner: Client, key: str) -> None:
    """The tool of this call runs: it has printed something."""
    async with asyncio.timeout(60):
        while True:
            request = execution_pb.StreamExecutionRequest(call_key=key)
            try:
                async for event in runner.execution.StreamExecution(request):
                    assert event.stdout == "begun\n"
                    return
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.NOT_FOUND:
                    raise
                await asyncio.sleep(0.05)


def _sandboxes(service: asyncio.subprocess.Process) -> list[psutil.Process]:
    """What runs in sandboxes of a service."""
    found = psutil.Process(service.pid).children(recursive=True)
    return [process for process in found if "/opt/loci/worker" in " ".join(process.cmdline())]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.usefixtures("bubblewrap")
async def test_sigterm_ends_calls_and_itself(tool_url: str, tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/t.sock"
    organization_id = UUID(int=77)
    async with process(tool_url, address) as service, client(address, organization_id) as runner:
        slow = await runner.upsert(tool("print('begun', flush=True); time.sleep(60)", imports="import time"))
        call = asyncio.ensure_future(runner.call(slow.id, key="stopped"))
        await _until_begun(runner, "stopped")
        service.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await service.wait() == 0
        await asyncio.gather(call, return_exceptions=True)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LOCI_SANDBOX", "chroot"),
        ("LOCI_TOOL_TIMEOUT", "0"),
        ("LOCI_CONTEXT_PUBLIC_KEYS", "{}"),
        ("LOCI_ENCRYPTION_KEY", "c2hvcnQ="),
    ],
)
async def test_a_wrong_setting_is_one_line(tool_url: str, tmp_path: Path, variable: str, value: str) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "LOCI_LISTEN": f"unix://{tmp_path}/t.sock",
        "LOCI_DATABASE_URL": tool_url,
        "LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(PRIVATE_KEY),
        "LOCI_ENCRYPTION_KEY": b64encode(ENCRYPTION_KEY).decode(),
        variable: value,
    }
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.tool_runner"),
        cwd=_ROOT,
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await service.communicate()
    assert service.returncode == 2
    assert errors.decode().count("\n") == 1
    assert variable in errors.decode()
