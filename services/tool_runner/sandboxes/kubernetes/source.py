"""Workers on sandbox hosts, spoken to by pod address over mutual TLS.

What it promises: each call in a fresh process of a pod that holds nothing, has no token and no network, runs under the
RuntimeClass of its Deployment and our seccomp rules, and serves no other tenant in its life.
What it does not: calls of one tenant share a pod one after the other, memory and processes are counted by the worker
and the pod's own limits, and without a RuntimeClass the node's kernel is shared.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.kubernetes.cluster import Cluster
from services.tool_runner.sandboxes.kubernetes.rules import Lease, Pod, Recycle, Refuse, Use, choose
from services.tool_runner.sandboxes.ports import Shape
from services.tool_runner.sandboxes.remote_settings import KubernetesSettings
from services.tool_runner.sandboxes.seccomp import MACHINES, bpf_filter

HOST_NAME = "sandbox-host"  # in the hosts' certificate, whatever their addresses
_CONNECT_SECONDS = 5.0
_LOOK_SECONDS = 0.25
# How long a host that was at work for somebody else is left alone.
_BUSY_SECONDS = 2.0
_CHUNK = 1 << 16


class KubernetesSource:
    """`sandboxes.ports.WorkerSource`. Nothing is kept warm for nobody: a host belongs to a tenant."""

    name = "kubernetes"

    def __init__(self, settings: KubernetesSettings) -> None:
        self.image = ""
        self._settings = settings
        self._cluster = Cluster(settings.cluster)
        self._tls = _trusting(settings.tls)
        self._leases: dict[str, Lease] = {}
        self._choosing = asyncio.Lock()
        self._problem = ""  # what the host said that was asked last
        self._filters = {machine: base64.b64encode(bpf_filter(machine)).decode() for machine in MACHINES}

    async def start(self, shape: Shape, tenant: str) -> "HostWorker":
        """See `ports.WorkerSource`."""
        if not tenant:
            raise SandboxUnavailable("a sandbox host belongs to a tenant: nothing is kept ready for nobody")
        digest = hashlib.sha256(tenant.encode()).hexdigest()
        end = time.monotonic() + self._settings.patience
        while True:
            pod = await self._choose_host(digest, end)
            if worker := await self._greet(pod, shape, digest):
                return worker

    async def close(self) -> None:
        """See `ports.WorkerSource`."""
        await self._cluster.close()

    def release(self, name: str) -> None:
        """Notes that a call ended there."""
        if lease := self._leases.get(name):
            self._leases[name] = Lease(lease.tenant)

    async def _choose_host(self, tenant: str, end: float) -> Pod:
        """Returns a host to be asked, ours from here on as far as this process is concerned."""
        while True:
            async with self._choosing:
                pods = await self._cluster.hosts()
                self._leases = {pod.name: self._leases[pod.name] for pod in pods if pod.name in self._leases}
                decision = choose(pods, self._leases, tenant, shared_kernel=self._settings.shared_kernel)
                match decision:
                    case Use(pod):
                        self._leases[pod.name] = Lease(tenant, busy=True)
                        self.image = pod.image
                        return pod
                    case Recycle(pod):
                        await self._recycle(pod)
                        continue
                    case Refuse(why):
                        raise SandboxUnavailable(why)
            if time.monotonic() >= end:
                raise SandboxUnavailable(self._problem or decision.why)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _greet(self, pod: Pod, shape: Shape, tenant: str) -> "HostWorker | None":
        """Returns a worker there; None where the host is another's or at work, which is known from now on."""
        greeting: dict[str, Any] = {"tenant": tenant, "language": shape.language.value, "seccomp": self._filters}
        try:
            layer = await asyncio.to_thread(shape.layer.archive.read_bytes) if shape.layer else b""
            greeting["layer"] = len(layer)
            reader, writer, answer = await self._speak(pod, greeting, layer)
        except SandboxUnavailable as error:
            # It may have ended since the cluster looked at it; others, or its successor, are asked for a while.
            self._problem = str(error)
            self._learn(pod, {"tenant": tenant, "busy": True})
            return None
        except BaseException:
            self._leases.pop(pod.name, None)
            raise
        if "refused" in answer:
            writer.close()
            self._learn(pod, answer)
            await asyncio.sleep(_LOOK_SECONDS)
            return None
        self._problem = ""
        return HostWorker(self, pod.name, reader, writer)

    async def _recycle(self, pod: Pod) -> None:
        """Deletes a host that serves nobody; one that does not answer serves nobody either."""
        if not pod.spent:
            try:
                _, writer, answer = await self._speak(pod, {"retire": True, "layer": 0})
            except SandboxUnavailable:
                answer = {}
            else:
                writer.close()
            if "refused" in answer:
                self._learn(pod, answer)
                return
        await self._cluster.delete(pod.name)
        self._leases.pop(pod.name, None)

    def _learn(self, pod: Pod, answer: Mapping[str, Any]) -> None:
        """Notes whose it is, and that it is at work for a while."""
        busy = bool(answer.get("busy"))
        self._leases[pod.name] = Lease(str(answer.get("tenant", "")), busy)
        if busy:
            asyncio.get_running_loop().call_later(_BUSY_SECONDS, self.release, pod.name)

    async def _speak(
        self, pod: Pod, greeting: Mapping[str, Any], layer: bytes = b""
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, dict[str, Any]]:
        """Returns a connection and what the host answers to the greeting. Raises SandboxUnavailable."""
        body, writer = json.dumps(greeting).encode(), None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS + len(layer) / 1e6):
                reader, writer = await asyncio.open_connection(
                    pod.address, self._settings.port, ssl=self._tls, server_hostname=HOST_NAME
                )
                writer.write(len(body).to_bytes(4, "big") + body + layer)
                await writer.drain()
                size = int.from_bytes(await reader.readexactly(4), "big")
                if size > _CHUNK:
                    raise ValueError(f"it announced {size} bytes")
                return reader, writer, json.loads(await reader.readexactly(size))
        except BaseException as error:
            if writer:
                writer.close()
            if not isinstance(error, OSError | EOFError | ValueError):
                raise
            problem = f"sandbox host {pod.name} does not answer as it should: {str(error) or type(error).__name__}"
            raise SandboxUnavailable(problem) from error


class HostWorker:
    """`sandboxes.ports.Worker` behind a connection to a host; the worker counts its memory itself."""

    counted = False

    def __init__(
        self, source: KubernetesSource, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._source = source
        self._name = name
        self._reader = reader
        self._writer = writer
        self._closed = False

    async def read(self) -> bytes:
        """See `ports.Worker`."""
        return await self._reader.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        """See `ports.Worker`."""
        self._writer.write(data)
        await self._writer.drain()

    async def problem(self) -> str:
        """Returns "": the host keeps what its worker complains of to itself."""
        return f"the worker on sandbox host {self._name} ended"

    async def ran_out_of_memory(self) -> bool:
        """Returns False: the worker says so itself, by its own count."""
        return False

    async def close(self) -> None:
        """See `ports.Worker`: the host kills everything when the connection ends."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        try:
            with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await self._writer.wait_closed()
        finally:
            self._source.release(self._name)


def _trusting(folder: Path) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    except OSError as error:
        raise SandboxUnavailable(
            f"no certificate for sandbox hosts in {folder} (ca.crt, tls.crt, tls.key): {error}"
        ) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
