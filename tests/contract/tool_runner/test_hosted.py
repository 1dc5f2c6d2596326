"""Hosted sandboxes: a call from its start to its end through the vendors' own SDKs, against fakes of their services."""

import asyncio
import io
import json
import shutil
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from grpclib.const import Status
from modal_proto import api_pb2

from services.tool_runner.core.job import ExitReason, File, Job, Language, Layer, Limits, Output, SandboxUnavailable
from services.tool_runner.core.ports import Ends
from services.tool_runner.sandboxes.e2b import E2bSource
from services.tool_runner.sandboxes.modal import ModalSource
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.remote_settings import E2bSettings, ModalSettings
from tests.fakes import e2b_server, modal_server
from tests.polling import until

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="the fakes run what they are asked to in bwrap")
LIMITS = Limits(seconds=20)
SLEEP = "import time\ndef tool():\n    print('begun', flush=True)\n    time.sleep(60)"


@dataclass
class Hosted:
    vendor: Any
    sandbox: PooledSandbox


@asynccontextmanager
async def e2b(key: str = e2b_server.KEY, **options: Any) -> AsyncIterator[Hosted]:
    async with e2b_server.serving() as server:
        settings = E2bSettings(api_key=key, api_url=server.url, sandbox_url=server.url)
        sandbox = PooledSandbox(E2bSource(settings, **options), warm=0)
        try:
            yield Hosted(server, sandbox)
        finally:
            await sandbox.close()
            assert not server.machines


@asynccontextmanager
async def modal(token: tuple[str, str] = modal_server.TOKEN) -> AsyncIterator[Hosted]:
    async with modal_server.serving() as server:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("MODAL_SERVER_URL", server.url)  # read by the SDK; its own service otherwise
            sandbox = PooledSandbox(ModalSource(ModalSettings(*token)), warm=0)
            try:
                yield Hosted(server, sandbox)
            finally:
                await sandbox.close()
                assert not server.machines


KINDS: dict[str, Callable[..., AbstractAsyncContextManager[Hosted]]] = {"e2b": e2b, "modal": modal}


@pytest_asyncio.fixture(loop_scope="module", params=KINDS)
async def hosted(request: pytest.FixtureRequest) -> AsyncIterator[Hosted]:
    async with KINDS[request.param]() as made:
        yield made


def job(source: str, **given: Any) -> Job:
    return Job(source, "tool", given.pop("arguments", {}), **({"limits": LIMITS} | given))


async def test_a_call_runs_as_nobody_and_gives_what_it_made(hosted: Hosted) -> None:
    source = """
import os, sys
def tool(a):
    print("out"); print("err", file=sys.stderr)
    open("made.bin", "wb").write(bytes(range(256)) * 1000)
    given = open("/inputs/given.txt").read()
    return [a, given, os.environ["NAME"], os.getuid(), os.access("/opt/loci/worker", os.W_OK)]
"""
    printed: list[Output] = []
    call = job(source, arguments={"a": "ä"}, environment={"NAME": "value"}, inputs=(File("given.txt", b"of ours"),))
    result = await hosted.sandbox.run(call, Ends(on_output=printed.append))
    assert result.reason is ExitReason.OK, result
    assert json.loads(result.result or "") == ["ä", "of ours", "value", 65534, False]
    assert sorted((one.stream, one.text) for one in printed) == [("stderr", "err\n"), ("stdout", "out\n")]
    assert result.files == (File("made.bin", bytes(range(256)) * 1000),)


async def test_packages_and_javascript(hosted: Hosted, tmp_path: Path) -> None:
    archive = tmp_path / "key.tar"
    content = b"value = 'of a package'"
    about = tarfile.TarInfo("python/packaged.py")
    about.size, about.mode = len(content), 0o644
    with tarfile.open(archive, "w") as tar:
        tar.addfile(about, io.BytesIO(content))
    source = "import packaged\ndef tool():\n    return packaged.value"
    packaged = await hosted.sandbox.run(job(source, layer=Layer("key", archive)))
    assert packaged.result == '"of a package"', packaged
    if shutil.which("node") is None:
        pytest.skip("no Node")
    script = "export function tool(a: number): number { return a + 1 }"
    result = await hosted.sandbox.run(job(script, arguments={"a": 1}, language=Language.NODE))
    assert result.result == "2", result


async def test_what_a_tool_raises_and_how_long_it_may_take(hosted: Hosted) -> None:
    raised = await hosted.sandbox.run(job("def tool():\n    raise ValueError('no')"))
    assert raised.reason is ExitReason.RAISED
    assert raised.error
    assert (raised.error.type, raised.error.message) == ("ValueError", "no")
    late = await hosted.sandbox.run(job(SLEEP, limits=Limits(seconds=5)))
    assert (late.reason, late.stdout) == (ExitReason.TIMEOUT, "begun\n")
    await until(lambda: not hosted.vendor.machines)
    assert hosted.vendor.made == 2


async def test_a_cancelled_call_leaves_nothing_at_the_vendor(hosted: Hosted) -> None:
    begun = asyncio.Event()
    running = asyncio.create_task(hosted.sandbox.run(job(SLEEP), Ends(on_output=lambda _: begun.set())))
    await asyncio.wait_for(begun.wait(), 60)
    assert len(hosted.vendor.machines) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not hosted.vendor.machines


async def test_a_call_cancelled_while_its_sandbox_is_made_leaves_nothing(hosted: Hosted) -> None:
    hosted.vendor.gate.clear()
    running = asyncio.create_task(hosted.sandbox.run(job(SLEEP)))
    await until(lambda: hosted.vendor.waiting)
    running.cancel()
    hosted.vendor.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not hosted.vendor.machines


async def test_a_sandbox_that_the_vendor_ends_ends_its_call(hosted: Hosted) -> None:
    begun = asyncio.Event()
    running = asyncio.create_task(hosted.sandbox.run(job(SLEEP), Ends(on_output=lambda _: begun.set())))
    await asyncio.wait_for(begun.wait(), 60)
    await hosted.vendor.cut()
    result = await asyncio.wait_for(running, 60)
    assert (result.reason, result.stdout) == (ExitReason.KILLED, "begun\n")
    again = await hosted.sandbox.run(job("def tool():\n    return 1"))
    assert again.result == "1"


async def test_a_call_of_which_nobody_knows_whether_it_arrived_is_not_made_again(hosted: Hosted) -> None:
    hosted.vendor.loses_answer_to = b"begun"
    result = await hosted.sandbox.run(job("def tool():\n    print('begun')"))
    assert result.reason is ExitReason.KILLED
    assert result.error
    assert "not known" in result.error.message
    assert hosted.vendor.made == 1


@pytest.mark.parametrize(
    ("kind", "refuse", "sentence"),
    [
        ("e2b", (429, "quota"), "E2B starts no more sandboxes for this key just now: .*quota"),
        ("e2b", (500, "broken"), "E2B failed: 500: broken"),
        ("e2b", (503, "full"), "E2B failed: 503: .*full"),
        ("e2b", (404, "template 'base' not found"), "E2B failed: 404: template 'base' not found"),
        ("modal", (Status.RESOURCE_EXHAUSTED, "quota"), "Modal starts no more sandboxes for this account .*: quota"),
        ("modal", (Status.INTERNAL, "broken"), "Modal failed: broken"),
    ],
)
async def test_what_a_vendor_refuses(kind: str, refuse: tuple[Any, str], sentence: str) -> None:
    async with KINDS[kind]() as made:
        made.vendor.refuse = refuse
        with pytest.raises(SandboxUnavailable, match=sentence):
            await made.sandbox.run(job(SLEEP))
        assert made.vendor.made == 0


async def test_a_wrong_key() -> None:
    async with e2b("e2b_" + "1" * 40) as made:
        with pytest.raises(SandboxUnavailable, match="does not accept E2B_API_KEY"):
            await made.sandbox.run(job(SLEEP))


async def test_a_wrong_token() -> None:
    async with modal(("ak-test", "as-other")) as made:
        with pytest.raises(SandboxUnavailable, match="does not accept MODAL_TOKEN_ID and MODAL_TOKEN_SECRET"):
            await made.sandbox.run(job(SLEEP))


async def test_what_modal_is_asked_for() -> None:
    async with modal() as made:
        result = await made.sandbox.run(job("def tool():\n    return 1"))
        assert result.result == "1"
        [asked] = made.vendor.asked
    assert asked.app_id == "ap-loci-tools"
    made_as = asked.definition
    assert made_as.image_id == "im-python:3.12-slim"
    assert made_as.timeout_secs == 1800
    assert made_as.network_access.network_access_type == api_pb2.NetworkAccess.NetworkAccessType.BLOCKED
    assert (made_as.resources.memory_mb, made_as.resources.memory_mb_max) == (576, 576)
    assert {tag.tag_name: tag.tag_value for tag in asked.tags} == {"app": "loci", "part": "tool_runner"}


async def test_what_e2b_is_asked_for_and_told() -> None:
    async with e2b(lease_seconds=1) as made:
        result = await made.sandbox.run(job("import time\ndef tool():\n    time.sleep(1)\n    return 1"))
        assert result.result == "1"
        [asked] = made.vendor.asked
    assert asked["templateID"] == "base"
    assert asked["allow_internet_access"] is False
    assert (asked["timeout"], asked["autoPause"]) == (1, False)
    assert asked["metadata"] == {"app": "loci", "part": "tool_runner"}
