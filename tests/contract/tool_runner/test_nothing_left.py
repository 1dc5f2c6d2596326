"""After a call, a cancel, or the death of whoever held the sandbox, nothing of it runs or stays."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from services.tool_runner.core.job import Job, Limits, Result
from services.tool_runner.core.ports import Ends, Sandbox
from services.tool_runner.sandboxes.bubblewrap import source as bubblewrap
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings
from services.tool_runner.sandboxes.pool import PooledSandbox
from tests.contract.tool_runner.engine import IMAGE, containers
from tests.polling import until

SLEEP = "import time\ndef tool():\n    print('begun', flush=True)\n    time.sleep(600)"
_ROOT = Path(__file__).resolve().parents[3]


@pytest_asyncio.fixture(loop_scope="module")
async def docker_sandbox(engine_environment: dict[str, str]) -> AsyncIterator[DockerSandbox]:
    """One for each test: what is looked at is what it leaves."""
    sandbox = DockerSandbox(DockerSettings(image=IMAGE, environment=engine_environment))
    yield sandbox
    await sandbox.close()


def _children(pid: int, word: str) -> list[int]:
    """Descendants of `pid` whose command line holds `word`."""
    children = [child for child in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _parent(child) == pid]
    below = [deeper for child in children for deeper in _children(child, word)]
    return [child for child in children if word in _command(child)] + below


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _groups() -> list[Path]:
    """Control groups that this process made."""
    mount = Path("/sys/fs/cgroup")
    found = [*mount.glob("*/loci-sandbox-*"), *mount.glob("loci.sandboxes/loci-sandbox-*")]
    return [group for group in found if f"-{os.getpid()}-" in group.name]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def _begun(sandbox: Sandbox) -> asyncio.Task[Result]:
    """A call that sleeps in its sandbox."""
    begun = asyncio.Event()
    job = Job(SLEEP, "tool", {}, limits=Limits(seconds=120))
    running = asyncio.create_task(sandbox.run(job, Ends(on_output=lambda _: begun.set())))
    await asyncio.wait_for(begun.wait(), 60)
    return running


async def test_docker_leaves_no_container_when_closed(
    docker_sandbox: DockerSandbox, engine_environment: dict[str, str]
) -> None:
    assert (await docker_sandbox.run(Job("def tool():\n    return 1", "tool", {}))).result == "1"
    await docker_sandbox.close()
    assert containers(engine_environment) == []


async def test_docker_launcher_ends_when_idle(engine_environment: dict[str, str]) -> None:
    settings = DockerSettings(image=IMAGE, warm=0, keep_launcher_seconds=0.5, environment=engine_environment)
    sandbox = DockerSandbox(settings)
    launchers: list[int] = []
    # While it runs: after that it may end at any time.
    look = Ends(on_output=lambda _: launchers.extend(_children(os.getpid(), "sandboxes.launcher")))
    assert (await sandbox.run(Job("def tool():\n    print('x')\n    return 1", "tool", {}), look)).result == "1"
    assert len(launchers) == 1
    await until(lambda: not _alive(launchers[0]))
    assert containers(engine_environment) == []
    assert (await sandbox.run(Job("def tool():\n    return 2", "tool", {}))).result == "2"
    await sandbox.close()


async def test_docker_containers_end_when_their_launcher_is_killed(
    docker_sandbox: DockerSandbox, engine_environment: dict[str, str]
) -> None:
    await docker_sandbox.run(Job("def tool():\n    return 1", "tool", {}))
    running = await _begun(docker_sandbox)
    (launcher,) = _children(os.getpid(), "sandboxes.launcher")
    # One that the engine is still making for it would be there only after the next has removed the others.
    await until(lambda: len(containers(engine_environment, launcher)) == 1 + DockerSettings(image=IMAGE).warm)
    os.kill(launcher, signal.SIGKILL)
    result = await running
    assert result.error is not None
    assert "ended without an answer" in result.error.message
    # The sandbox may have a new launcher already, with containers of its own.
    await until(lambda: containers(engine_environment, launcher, running=True) == [])
    # What they leave, stopped, the next launcher removes; one that the engine was still making, the next but one.
    assert (await docker_sandbox.probe()).image
    async with asyncio.timeout(60):
        while containers(engine_environment, launcher):
            another = DockerSandbox(DockerSettings(image=IMAGE, warm=0, environment=engine_environment))
            await another.probe()
            await another.close()
    assert (await docker_sandbox.run(Job("def tool():\n    return 2", "tool", {}))).result == "2"


async def test_docker_says_what_is_missing(engine_environment: dict[str, str]) -> None:
    sandbox = DockerSandbox(DockerSettings(image="loci-absent:latest", environment=engine_environment))
    probe = await sandbox.probe()
    assert (probe.engine, probe.image) == (True, False)
    await sandbox.close()
    nowhere = engine_environment | {"DOCKER_HOST": "unix:///nowhere/socket"}
    sandbox = DockerSandbox(DockerSettings(image=IMAGE, environment=nowhere))
    probe = await sandbox.probe()
    assert (probe.engine, probe.image) == (False, False)
    assert "no container engine answers" in probe.problem
    await sandbox.close()


async def test_bubblewrap_leaves_no_process_and_no_control_group(bubblewrap_sandbox: PooledSandbox) -> None:
    alone = await bubblewrap.create(warm=0)
    others, groups_before = _children(os.getpid(), "/opt/loci/worker"), set(_groups())
    running = await _begun(alone)
    inside = [pid for pid in _children(os.getpid(), "/opt/loci/worker") if pid not in others]
    assert inside
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await until(lambda: not any(_alive(pid) for pid in inside))
    # The group goes when its last process has.
    await until(lambda: set(_groups()) <= groups_before)


async def test_bubblewrap_dies_with_the_service(bubblewrap_sandbox: PooledSandbox) -> None:
    program = (
        "import asyncio\n"
        "from services.tool_runner.core.job import Job\n"
        "from services.tool_runner.sandboxes.bubblewrap import source as bubblewrap\n"
        "async def main():\n"
        f"    await (await bubblewrap.create()).run(Job({SLEEP!r}, 'tool', {{}}))\n"
        "asyncio.run(main())\n"
    )
    service = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=_ROOT)
    try:
        await until(lambda: len(_children(service.pid, "/opt/loci/worker")) >= 3)  # bwrap, keeper, tool
        inside = _children(service.pid, "/opt/loci/worker")
    finally:
        service.kill()
        await service.wait()
    await until(lambda: not any(_alive(pid) for pid in inside))


async def test_a_worker_without_a_job_ends_with_its_input() -> None:
    worker = _ROOT / "services/tool_runner/sandboxes/worker"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(worker)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    assert await process.stdout.readexactly(5 + 20) == b"\x01\x00\x00\x00\x14LOCI-WORKER 2 python"
    process.stdin.close()
    async with asyncio.timeout(30):
        assert await process.wait() == 0


async def test_limits_are_the_same_for_warm_and_for_cold(docker_sandbox: DockerSandbox) -> None:
    two = ("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")
    source = f"import os\ndef tool():\n    return [open(p).read().strip() for p in {two} if os.path.exists(p)]"
    default, other = Limits(), Limits(processes=17)
    for limits, expected in ((default, "64"), (default, "64"), (other, "17"), (default, "64")):
        result = await docker_sandbox.run(Job(source, "tool", {}, {}, limits))
        assert result.result == f'["{expected}"]'
