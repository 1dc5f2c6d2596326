"""Leases of sandbox hosts, as this process knows them: each ends, however its call did."""

import asyncio
import ssl
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from services.tool_runner.core.job import Language, SandboxUnavailable
from services.tool_runner.sandboxes.kubernetes import source
from services.tool_runner.sandboxes.kubernetes.rules import Pod
from services.tool_runner.sandboxes.remote_settings import ClusterSettings, KubernetesSettings
from tests.polling import until


class _Slow:
    """A layer on a disk that answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.answer = threading.Event(), threading.Event()

    def read_bytes(self) -> bytes:
        self.asked.set()
        assert self.answer.wait(60)
        return b""


class _Cluster:
    """One host, at which nobody answers."""

    def __init__(self, settings: ClusterSettings) -> None:
        """Nothing is asked of it."""

    async def hosts(self) -> list[Pod]:
        return [Pod(name="one", address="127.0.0.1", runtime_class="gvisor")]

    async def close(self) -> None:
        """Nothing is open."""


async def test_a_call_cancelled_before_it_spoke_to_its_host_leaves_it_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "Cluster", _Cluster)
    monkeypatch.setattr(source, "_trusting", lambda folder: ssl.create_default_context())
    settings = KubernetesSettings(ClusterSettings("https://none", "n"), Path("/none"), port=1, patience=0.2)
    hosts = source.KubernetesSource(settings)
    disk = _Slow()
    slow: Any = SimpleNamespace(language=Language.PYTHON, layer=SimpleNamespace(archive=disk))
    starting = asyncio.create_task(hosts.start(slow, "tenant"))
    await until(disk.asked.is_set)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    disk.answer.set()
    with pytest.raises(SandboxUnavailable, match="does not answer as it should"):
        await hosts.start(slow, "tenant")
    await hosts.close()
