"""The particulars of containers: the image, the relay, the runtime, layers as images, and remains of dead ones."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.tool_runner.core.job import MIB, ExitReason, Job, Language, Layer, Mode
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings, DockerSource
from services.tool_runner.sandboxes.launcher import engine as launched
from services.tool_runner.sandboxes.launcher.engine import Engine
from services.tool_runner.sandboxes.ports import shape_of
from services.tool_runner.sandboxes.streams import MOST_WAITING, WorkerProcess
from tests.contract.tool_runner.engine import IMAGE, containers
from tests.polling import until

ROOT = Path(__file__).resolve().parents[3]


@pytest_asyncio.fixture(loop_scope="module")
async def docker_sandbox(engine_environment: dict[str, str]) -> AsyncIterator[DockerSandbox]:
    """One for each test: what is looked at is what it leaves."""
    sandbox = DockerSandbox(DockerSettings(image=IMAGE, environment=engine_environment))
    yield sandbox
    await sandbox.close()


def docker(environment: dict[str, str], *arguments: str) -> str:
    return subprocess.run(["docker", *arguments], env=environment, capture_output=True, text=True, check=True).stdout


async def test_the_image_has_the_client_and_the_compiler(docker_sandbox: DockerSandbox) -> None:
    source = "import letta_client\ndef tool():\n    return letta_client.__version__"
    result = await docker_sandbox.run(Job(source, "tool", {}))
    assert (result.reason, json.loads(result.result or "")) == (ExitReason.OK, "1.12.1"), result
    source = "type Pair<T> = [T, T];\nexport function tool(x: number): Pair<number> { return [x, x] as Pair<number>; }"
    result = await docker_sandbox.run(Job(source, "tool", {"x": 2}, language=Language.NODE))
    assert (result.reason, result.result) == (ExitReason.OK, "[2,2]"), result


async def test_a_flood_that_nobody_reads_waits_in_the_container(docker_sandbox: DockerSandbox) -> None:
    """Neither the launcher nor this process takes in what is not asked for."""
    argv = ("python3", "-c", "import os\nwhile True: os.write(1, b'x' * 65536)")
    process = await docker_sandbox.open(Job("", "", {}, mode=Mode.PROCESS, argv=argv))
    assert isinstance(process, WorkerProcess)
    assert await process.read()
    (launcher,) = launchers()
    # Here it stops at a fixed number of pieces; the program would fill more memory of the launcher within a second.
    await until(lambda: process.waiting == MOST_WAITING)
    before = resident(launcher)
    await asyncio.sleep(2)
    assert process.waiting == MOST_WAITING
    assert resident(launcher) - before < 64 * MIB
    assert len(await process.read()) > 0
    await process.close()


async def test_a_container_that_does_not_read_holds_up_nobody_else(docker_sandbox: DockerSandbox) -> None:
    argv = ("python3", "-c", "import time\ntime.sleep(600)")
    process = await docker_sandbox.open(Job("", "", {}, mode=Mode.PROCESS, argv=argv))
    writing = asyncio.create_task(process.write(b"x" * 64 * MIB))
    await asyncio.sleep(1)
    assert not writing.done()
    assert (await docker_sandbox.run(Job("def tool():\n    return 1", "tool", {}))).result == "1"
    await process.close()
    with pytest.raises(ConnectionError):
        await writing


async def test_a_runtime_that_the_engine_has_not_is_named(engine_environment: dict[str, str]) -> None:
    sandbox = DockerSandbox(DockerSettings(image=IMAGE, runtime="no-such", environment=engine_environment))
    probe = await sandbox.probe()
    assert not probe.engine
    assert "no runtime no-such (LOCI_SANDBOX_RUNTIME); it has" in probe.problem
    await sandbox.close()


def layer(tmp_path: Path, key: str) -> Layer:
    path = tmp_path / f"{key}.tar"
    with tarfile.open(path, "w") as tar:
        entry = tarfile.TarInfo("python/word.py")
        entry.size, entry.mode = 8, 0o644
        tar.addfile(entry, io.BytesIO(b"X = 'in'"))
    return Layer(key, path)


async def test_layers_become_images_and_the_oldest_go(
    engine_environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["a" * 64, "b" * 64, "c" * 64]
    source = DockerSource(DockerSettings(image=IMAGE, environment=engine_environment))
    for key in names:
        worker = await source.start(shape_of(Job("", "", {}, layer=layer(tmp_path, key))), "")
        await worker.close()
    await source.close()

    def kept() -> set[str]:
        tags = docker(engine_environment, "images", "--format={{.Tag}}", "loci-layer").split()
        return {tag[0] for tag in tags if tag[:40] in {name[:40] for name in names}}

    assert kept() == {"a", "b", "c"}
    monkeypatch.setenv("DOCKER_HOST", engine_environment["DOCKER_HOST"])
    monkeypatch.setattr(launched, "_MOST_LAYERS", 0)
    engine = await asyncio.to_thread(Engine, IMAGE, "")
    await asyncio.to_thread(engine.reap)
    assert kept() == set()


KILLED = """
import asyncio, os, sys
from services.tool_runner.core.job import Job
from services.tool_runner.core.ports import Ends
from services.tool_runner.sandboxes.docker import DockerSandbox, DockerSettings
async def main():
    sandbox = DockerSandbox(DockerSettings(image=sys.argv[1], warm=2, environment=dict(os.environ)))
    await sandbox.run(Job("def tool():\\n    return 1", "tool", {}))
    print("ran", flush=True)
    source = "import time\\ndef tool():\\n    print(1, flush=True)\\n    time.sleep(600)"
    await sandbox.run(Job(source, "tool", {}), Ends(on_output=lambda _: print("begun", flush=True)))
asyncio.run(main())
"""


async def test_service_and_launcher_killed_at_once_leave_nothing_after_the_next_start(
    docker_sandbox: DockerSandbox, engine_environment: dict[str, str]
) -> None:
    environment = {**engine_environment, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"}
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, IMAGE), cwd=ROOT, env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout
    assert await service.stdout.readline() == b"ran\n"
    assert await service.stdout.readline() == b"begun\n"
    (launcher,) = launchers(service.pid)
    os.kill(launcher, signal.SIGKILL)
    service.kill()
    await service.wait()
    assert containers(engine_environment, launcher)
    assert (await docker_sandbox.probe()).image
    assert containers(engine_environment, launcher) == []


def launchers(parent: int | None = None) -> list[int]:
    """Launchers that a process started, by default this one."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            command = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if int(status[1]) == (parent or os.getpid()) and status[0] != "Z" and "sandboxes.launcher" in command:
            found.append(int(pid))
    return found


def resident(pid: int) -> int:
    """Bytes of memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
