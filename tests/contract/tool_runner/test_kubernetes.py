"""Sandbox hosts: who is served where, what is left of a call, and who is let in. The hosts are containers."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from services.tool_runner.core.job import MIB, ExitReason, Job, Limits, SandboxUnavailable
from services.tool_runner.core.ports import Connection, Ends
from services.tool_runner.sandboxes.kubernetes.source import KubernetesSource
from services.tool_runner.sandboxes.pool import PooledSandbox
from tests.contract.tool_runner.fake_cluster import PORT, Cluster, cluster_of, serving, until_listening
from tests.contract.tool_runner.test_tunnel import CONNECT, Tunnel

LIMITS = Limits(seconds=30)
LEAVE = """
import os, subprocess, sys
def tool():
    for folder in ("/work", "/tmp", "/dev/shm"):
        os.makedirs(folder + "/mine/deep", exist_ok=True)
        open(folder + "/mine/deep/secret", "w").write("of the first")
        os.chmod(folder + "/mine", 0)
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    return os.getpid()
"""
LOOK = """
import glob, os
def tool():
    kept = [path for folder in ("/work", "/tmp", "/dev/shm", "/inputs") for path in os.listdir(folder)]
    commands = [open(path, "rb").read().decode() for path in glob.glob("/proc/[0-9]*/cmdline")]
    keys = [path for path in glob.glob("/run/loci/**/*.key", recursive=True)]
    return [kept, [command for command in commands if "sleep" in command], keys]
"""

Opened = tuple[Cluster, PooledSandbox]


@asynccontextmanager
async def runner_of(cluster: Cluster, **settings: Any) -> AsyncIterator[PooledSandbox]:
    with serving(cluster) as (server, authority):
        sandbox = PooledSandbox(KubernetesSource(cluster.settings(server, authority, **settings)), warm=0)
        try:
            yield sandbox
        finally:
            await sandbox.close()


async def value(sandbox: PooledSandbox, tenant: str, source: str) -> Any:
    result = await sandbox.run(Job(source, "tool", {}, limits=LIMITS, tenant=tenant))
    assert result.reason is ExitReason.OK, result
    return json.loads(result.result or "")


@pytest.fixture(scope="module")
def one_host(engine_environment: dict[str, str]) -> Iterator[Cluster]:
    """A cluster with one host, whose tenant is whoever called last."""
    with cluster_of(engine_environment, 1, "gvisor") as cluster:
        yield cluster


async def test_calls_of_one_tenant_share_a_host_and_nothing_else(one_host: Cluster) -> None:
    async with runner_of(one_host) as sandbox:
        await value(sandbox, "ada", LEAVE)
        deleted = len(one_host.deleted)
        assert await value(sandbox, "ada", LOOK) == [[], [], []]
        assert sandbox.name == "kubernetes"
    assert len(one_host.deleted) == deleted


async def test_a_host_at_work_is_neither_shared_nor_deleted_whoever_drives_it(one_host: Cluster) -> None:
    begun, told = asyncio.Event(), asyncio.Event()

    async def until_told(connection: Connection) -> None:
        begun.set()
        await told.wait()

    waits = CONNECT + "def tool():\n    connect().recv(1)\n    return 'done'"
    async with runner_of(one_host) as mine, runner_of(one_host, patience=0.5) as theirs:
        job = Job(waits, "tool", {}, limits=Limits(seconds=100), tenant="ada")
        running = asyncio.create_task(mine.run(job, Ends(tunnel=Tunnel(until_told))))
        await asyncio.wait_for(begun.wait(), 60)
        deleted = len(one_host.deleted)
        with pytest.raises(SandboxUnavailable, match="busy"):
            await theirs.run(Job(LOOK, "tool", {}, limits=LIMITS, tenant="bob"))
        told.set()
        assert (await running).result == '"done"'
    assert len(one_host.deleted) == deleted


async def test_without_a_runtime_class_there_is_one_tenant(engine_environment: dict[str, str]) -> None:
    with cluster_of(engine_environment, 2, "") as cluster:
        async with runner_of(cluster) as sandbox:
            await value(sandbox, "ada", LOOK)
            with pytest.raises(SandboxUnavailable, match="LOCI_SANDBOX_SHARED_KERNEL=true"):
                await sandbox.run(Job(LOOK, "tool", {}, limits=LIMITS, tenant="bob"))
            await value(sandbox, "ada", LOOK)
        async with runner_of(cluster, shared_kernel=True) as sandbox:
            await value(sandbox, "ada", LOOK)
            await value(sandbox, "bob", LOOK)


async def test_a_host_that_dies_ends_its_call_and_no_other(one_host: Cluster) -> None:
    begun = asyncio.Event()
    sleep = "import time\ndef tool():\n    print(1, flush=True)\n    time.sleep(600)"
    async with runner_of(one_host) as sandbox:
        job = Job(sleep, "tool", {}, limits=Limits(seconds=100), tenant="ada")
        running = asyncio.create_task(sandbox.run(job, Ends(on_output=lambda _: begun.set())))
        await asyncio.wait_for(begun.wait(), 60)
        [name] = one_host.pods
        await asyncio.to_thread(one_host.delete, name)
        assert (await running).reason is ExitReason.KILLED
        until_listening(one_host.pods)
        assert await value(sandbox, "ada", LOOK) == [[], [], []]


async def test_what_the_kernel_did_to_one_call_is_not_said_of_the_next(one_host: Cluster) -> None:
    bomb = "def tool():\n    kept = []\n    while True: kept.append(bytearray(10**7))"
    async with runner_of(one_host) as sandbox:
        large = Limits(seconds=60, memory=4 * 1024 * MIB)  # more than the host has
        killed = await sandbox.run(Job(bomb, "tool", {}, limits=large, tenant="ada"))
        assert killed.reason is ExitReason.MEMORY
        ended = await sandbox.run(
            Job("import os\ndef tool():\n    os._exit(0)", "tool", {}, limits=LIMITS, tenant="ada")
        )
        assert ended.reason is ExitReason.KILLED


@pytest.mark.parametrize("identity", ["nobody", "another authority", "a host's own"])
async def test_only_the_runner_is_let_in(
    one_host: Cluster, identity: str, trusting: Callable[[Cluster, str], ssl.SSLContext]
) -> None:
    [pod] = one_host.pods.values()
    with (
        socket.create_connection((pod.address, PORT), timeout=30) as plain,
        trusting(one_host, identity).wrap_socket(plain, server_hostname="sandbox-host") as secure,
    ):
        greeting = json.dumps({"tenant": "x", "language": "python", "seccomp": {}, "layer": 0}).encode()
        try:
            secure.sendall(len(greeting).to_bytes(4, "big") + greeting)
            answer = secure.recv(100)
        except OSError:
            answer = b""
    assert answer == b""


async def test_a_host_is_deleted_before_it_serves_another_tenant(one_host: Cluster) -> None:
    async with runner_of(one_host) as sandbox:
        await value(sandbox, "ada", LEAVE)
        deleted, [name] = len(one_host.deleted), one_host.pods
        assert await value(sandbox, "bob", LOOK) == [[], [], []]
    assert one_host.deleted[deleted:] == [name]


@pytest.fixture
def trusting(tmp_path: Path) -> Callable[[Cluster, str], ssl.SSLContext]:
    """A client's side of TLS with the identity that a test wants."""

    def context(cluster: Cluster, identity: str) -> ssl.SSLContext:
        authority, mine = cluster.identities(identity, tmp_path)
        made = ssl.create_default_context(cafile=authority)
        if mine:
            made.load_cert_chain(f"{mine}/tls.crt", f"{mine}/tls.key")
        return made

    return context
