"""`make bench ARGS="tools ..."`: what a call of a tool costs in each sandbox, beside what one would do by hand.

First the sandboxes alone, in this process: a burst of calls into a full pool, one after the other; calls that come at a
rate, while the pool is refilled; as many as it can. Then a whole Loci: calls through the tool runner with receipts, and
what is left of them on the machine, before and after `kill -9` of the service.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psutil

from bench.common import Report, context_signer
from cli.home import Home
from gateway.access.auth import DEFAULT_ORGANIZATION
from loci.tool.v1 import execution_service_pb2 as wire
from loci.tool.v1.execution_service_pb2_grpc import ExecutionServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, use_context
from services.tool_runner.core.job import ExitReason, Job
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.sandboxes.bubblewrap import source as bubblewrap
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings
from tests.e2e.stack import Stack, running
from tests.polling import wait_until

IMAGE = "loci-sandbox:latest"
RATES = {"docker": 5.0, "bubblewrap": 40.0}  # calls a second that are to be kept up
SOURCE = '''
def add(a: int, b: int) -> int:
    """Adds.

    Args:
        a: one
        b: another
    """
    return a + b
'''
BY_HAND = "import json, sys\nexec(sys.argv[1])\nprint(json.dumps(add(**json.loads(sys.argv[2]))))"


class Bench:
    """The measurements of one kind of sandbox."""

    def __init__(self, report: Report, kind: str, options: argparse.Namespace) -> None:
        self.report, self.kind, self.options = report, kind, options

    async def sandbox_alone(self) -> None:
        """Measures a burst and a steady rate, without the service."""
        burst, seconds, rate = self.options.burst, self.options.seconds, RATES[self.kind]
        sandbox = await self._create(warm=burst)
        try:
            await call(sandbox)
            await wait_for_workers(self.kind, burst)
            self.report.spread(f"{self.kind}: burst of {burst} warm calls", await one_by_one(burst, sandbox))
        finally:
            await sandbox.close()
        sandbox = await self._create(warm=self.options.warm)
        try:
            await call(sandbox)
            await wait_for_workers(self.kind, self.options.warm)
            taken = await at_rate(rate, seconds, lambda: call(sandbox))
            self.report.spread(f"{self.kind}: {rate:g} calls/s for {seconds:g} s", taken)
            done = await at_full_load(seconds, lambda: call(sandbox))
            self.report.add(f"{self.kind}: calls/s at most, refill included", done / seconds)
        finally:
            await sandbox.close()

    def by_hand(self) -> None:
        """A fresh container, or a bare subprocess, per call: neither limited nor kept from anything."""
        arguments = [BY_HAND, SOURCE, '{"a": 1, "b": 2}']
        command = [sys.executable, "-c", *arguments]
        if self.kind == "docker":
            command = ["docker", "run", "--rm", "--network=none", "--entrypoint=python3", IMAGE, "-c", *arguments]
        taken = []
        for _ in range(self.options.by_hand):
            start = time.perf_counter()
            assert subprocess.run(command, capture_output=True, check=True).stdout.strip() == b"3"
            taken.append(time.perf_counter() - start)
        name = "docker run --rm" if self.kind == "docker" else "a bare subprocess"
        self.report.spread(f"by hand: {name}", taken)

    async def service(self, stack: Stack) -> None:
        """Calls through the tool runner, then what is left: while it is up, and after it was killed and started."""
        tool = stack.client().tools.upsert(source_code=SOURCE)
        before = leftovers(stack)
        async with _Caller(stack) as execute:
            await execute(tool.id)
            taken = [await _timed(lambda: execute(tool.id)) for _ in range(self.options.calls)]
        name = f"{self.kind}: {self.options.calls} calls through the tool runner"
        self.report.spread(name, taken)
        after_calls = leftovers(stack)
        stack.kill("tool_runner")
        wait_until(lambda: _restarted(stack), 60)
        await asyncio.sleep(3)  # orphans are removed beside serving
        after_kill = leftovers(stack)
        for what, count in before.items():
            self.report.add(f"{self.kind}: {what} before", count)
            self.report.add(f"{self.kind}: {what} after these calls, with a warm worker", after_calls[what])
            self.report.add(f"{self.kind}: {what} after kill -9 and restart", after_kill[what])

    async def _create(self, warm: int) -> Sandbox:
        if self.kind == "bubblewrap":
            return await bubblewrap.create(warm)
        environment = {name: os.environ[name] for name in ("DOCKER_HOST", "PATH", "HOME") if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        sandbox = DockerSandbox(DockerSettings(image=IMAGE, warm=warm, environment=environment))
        probe = await sandbox.probe()
        if not probe.image:
            raise SystemExit(probe.problem or "no sandbox image: run make sandbox-image")
        return sandbox


async def call(sandbox: Sandbox) -> None:
    """Makes one call, which must succeed."""
    result = await sandbox.run(Job(SOURCE, "add", {"a": 1, "b": 2}))
    assert (result.reason, result.result) == (ExitReason.OK, "3"), result


async def one_by_one(count: int, sandbox: Sandbox) -> list[float]:
    """Returns the seconds of each call."""
    return [await _timed(lambda: call(sandbox)) for _ in range(count)]


async def at_rate(rate: float, seconds: float, action: Callable[[], Awaitable[None]]) -> list[float]:
    """Seconds of each call, from the moment it was due: whoever is late makes the next ones late."""
    began, tasks = time.perf_counter(), []

    async def due(at: float) -> float:
        await action()
        return time.perf_counter() - at

    for number in range(int(rate * seconds)):
        at = began + number / rate
        await asyncio.sleep(max(0.0, at - time.perf_counter()))
        tasks.append(asyncio.create_task(due(at)))
    return await asyncio.gather(*tasks)


async def at_full_load(seconds: float, action: Callable[[], Awaitable[None]], at_once: int = 4) -> int:
    """Returns the number of calls done by `at_once` clients."""
    until, done = time.perf_counter() + seconds, 0

    async def work() -> None:
        nonlocal done
        while time.perf_counter() < until:
            await action()
            done += 1

    await asyncio.gather(*(work() for _ in range(at_once)))
    return done


async def wait_for_workers(kind: str, count: int) -> None:
    """Waits until so many workers are there, and the machine is quiet."""
    until = time.monotonic() + 120
    while len(containers() if kind == "docker" else bubblewraps()) < count:
        if time.monotonic() > until:
            raise TimeoutError(f"the pool has not {count} workers")
        await asyncio.sleep(0.2)
    await asyncio.sleep(2)


def leftovers(stack: Stack) -> Mapping[str, int]:
    """Counts what calls could leave on this machine."""
    home = {path for path in stack.home.rglob("*") if path.is_file() and "postgres" not in path.parts}
    return {
        "containers": len(containers()),
        "processes of sandboxes": len(bubblewraps()),
        "images": len(_docker("images", "--all", "--quiet")),
        "control groups": len(list(Path("/sys/fs/cgroup").glob("**/loci-sandbox-*"))),
        "files": len(home) + len(list(Path("/tmp").iterdir())),
    }


def containers() -> list[str]:
    """Sandboxes in containers, running or not."""
    return _docker("ps", "--all", "--quiet", "--filter", "label=loci.sandbox=1")


def bubblewraps() -> list[int]:
    """bwrap processes of workers; each has another within."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "bwrap" and "/opt/loci/worker" in process.cmdline():
                found.append(process.pid)
    return found


def _docker(*arguments: str) -> list[str]:
    if shutil.which("docker") is None:
        return []
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False).stdout.split()


async def _timed(action: Callable[[], Awaitable[Any]]) -> float:
    start = time.perf_counter()
    await action()
    return time.perf_counter() - start


def _restarted(stack: Stack) -> bool:
    with suppress(AssertionError, psutil.Error):
        return bool(stack.pid("tool_runner"))
    return False


class _Caller:
    """`execute(tool id)` over gRPC, as the agent service does it; default tenant."""

    def __init__(self, stack: Stack) -> None:
        home = Home(stack.home)
        signer = context_signer(home)
        self._context = signer.signed(CallContext(DEFAULT_ORGANIZATION, UUID(int=2), "run", ("tool_runner",)))
        self._channel = make_channel(f"unix://{home.socket('tool_runner')}")

    async def __aenter__(self) -> Callable[[str], Awaitable[None]]:
        stub: Any = ExecutionServiceStub(self._channel)

        async def execute(tool_id: str) -> None:
            request = wire.ExecuteToolRequest(call_key=str(uuid4()), tool_id=tool_id, arguments_json='{"a": 1, "b": 2}')
            with use_context(self._context):
                receipt = (await stub.ExecuteTool(request)).receipt
            assert receipt.result_json == "3", receipt

        return execute

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()


async def _measure(options: argparse.Namespace) -> None:
    report = Report()
    for kind in options.sandboxes.split(","):
        bench = Bench(report, kind, options)
        await bench.sandbox_alone()
        bench.by_hand()
        if options.calls:
            with running({"LOCI_SANDBOX": kind, "LOCI_SANDBOX_WARM": "1"}) as stack:
                await bench.service(stack)


def main(arguments: list[str]) -> None:
    """Prints every figure as it comes."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=tools")
    parser.add_argument("--sandboxes", default="docker,bubblewrap")
    parser.add_argument("--burst", type=int, default=50, help="calls of the burst, and workers that wait for it")
    parser.add_argument("--warm", type=int, default=8, help="workers that wait where calls come at a rate")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each sustained load")
    parser.add_argument("--by-hand", type=int, default=20, help="calls by hand")
    parser.add_argument("--calls", type=int, default=1000, help="calls through the service; 0: none, no kill")
    asyncio.run(_measure(parser.parse_args(arguments)))
