"""A Kubernetes API server for sandbox hosts, wire-faithful as far as the runner asks: its pods are containers.

A deleted pod is killed and another one takes its place, as with a Deployment.
"""

import http.server
import itertools
import json
import os
import socket
import ssl
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from k8s.make_certificates import certificates
from services.tool_runner.core.job import Job, Result
from services.tool_runner.core.ports import NO_ENDS, Ends, Process
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.remote_settings import ClusterSettings, KubernetesSettings
from tests.contract.tool_runner.engine import IMAGE
from tests.polling import wait_until

TOKEN = "of-the-service-account"
PORT = 18_443
_PODS = "/api/v1/namespaces/loci-sandboxes/pods"
_USER = 60_650


@dataclass
class ContainerHost:
    """A host as process 1 of a container, as hardened as the pod of k8s/sandbox-hosts."""

    folder: Path
    image: str
    engine: Mapping[str, str]
    identity: str = field(init=False)
    address: str = field(init=False)

    def __post_init__(self) -> None:
        for path in (self.folder / "tls", *(self.folder / "tls").iterdir()):
            os.chown(path, _USER, _USER)
        mounts = ("/work", "/tmp", "/inputs", "/opt/loci/layer")
        options = [f"--tmpfs={path}:uid={_USER},gid={_USER},mode=700" for path in mounts]
        options += ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", f"--user={_USER}:{_USER}"]
        options += [f"--volume={self.folder / 'tls'}:/run/loci/tls", "--memory=1g", "--pids-limit=256"]
        options += [f"--env=SANDBOX_HOST_LISTEN=0.0.0.0:{PORT}", "--entrypoint=python3", "--label=loci.test=1"]
        self.identity = self._docker("run", "--detach", *options, self.image, "-I", "/opt/loci/host.py")
        self.address = self._docker("inspect", "--format={{.NetworkSettings.IPAddress}}", self.identity)

    def stop(self) -> None:
        self._docker("rm", "--force", "--volumes", self.identity)

    def _docker(self, *arguments: str) -> str:
        return subprocess.check_output(["docker", *arguments], env={**os.environ, **self.engine}, text=True).strip()


class Cluster:
    """Keeps `replicas` hosts, made by `make` from a folder with their certificate. `deleted`: names, oldest first."""

    def __init__(self, make: Callable[[Path], ContainerHost], replicas: int, runtime_class: str) -> None:
        self._make = make
        self._runtime_class = runtime_class
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._numbers = itertools.count(1)
        self._files, self._runner_files = certificates(days=1)
        self.pods: dict[str, ContainerHost] = {}
        self.deleted: list[str] = []
        self.lock = threading.Lock()
        for _ in range(replicas):
            self._add()

    def _add(self) -> None:
        number = next(self._numbers)
        folder = Path(self._folder.name) / f"host-{number}"
        _write(folder / "tls", self._files)
        self.pods[f"sandbox-host-{number}"] = self._make(folder)

    def delete(self, name: str) -> bool:
        """Whether it was there."""
        with self.lock:
            if (pod := self.pods.pop(name, None)) is None:
                return False
            pod.stop()
            self.deleted.append(name)
            self._add()
        return True

    def listed(self) -> list[dict[str, Any]]:
        """As the API has them."""
        with self.lock:
            return [self._item(name, pod) for name, pod in self.pods.items()]

    def _item(self, name: str, pod: ContainerHost) -> dict[str, Any]:
        spec: dict[str, Any] = {"containers": [{"name": "sandbox", "image": "loci-sandbox:latest"}]}
        if self._runtime_class:
            spec["runtimeClassName"] = self._runtime_class
        status = {
            "phase": "ContainerHost",
            "podIP": pod.address,
            "containerStatuses": [{"ready": True, "restartCount": 0}],
        }
        return {"metadata": {"name": name}, "spec": spec, "status": status}

    def settings(self, server: str, authority: Path, **changes: Any) -> KubernetesSettings:
        """Returns the runner's settings."""
        folder = Path(self._folder.name)
        (folder / "token").write_text(TOKEN + "\n")
        _write(folder / "runner", self._runner_files)
        cluster = ClusterSettings(
            server=server, namespace="loci-sandboxes", token=folder / "token", authority=authority
        )
        return KubernetesSettings(cluster=cluster, tls=folder / "runner", port=PORT, **{"patience": 10.0} | changes)

    def identities(self, name: str, folder: Path) -> tuple[Path, Path | None]:
        """The hosts' authority, and a folder with the certificate of somebody who is not the runner."""
        _write(folder / "hosts", self._files)
        wrong = {
            "nobody": None,
            "another authority": certificates(days=1)[1],
            "a host's own": self._files,
        }
        if (files := wrong[name]) is None:
            return folder / "hosts" / "ca.crt", None
        _write(folder / "wrong", files)
        return folder / "hosts" / "ca.crt", folder / "wrong"

    def close(self) -> None:
        """Stop everything."""
        for pod in self.pods.values():
            pod.stop()
        self._folder.cleanup()


@contextmanager
def cluster_of(engine: dict[str, str], replicas: int, runtime_class: str) -> Iterator[Cluster]:
    """A cluster whose hosts listen; skips where the engine has no network for them."""
    cluster = Cluster(lambda folder: ContainerHost(folder, IMAGE, engine), replicas, runtime_class)
    try:
        if not all(pod.address for pod in cluster.pods.values()):
            pytest.skip("this container engine has no network for hosts")
        until_listening(cluster.pods)
        yield cluster
    finally:
        cluster.close()


@dataclass
class OfTenant:
    """A sandbox whose calls are all of one tenant."""

    inner: PooledSandbox
    tenant: str = "ada"
    name: str = "kubernetes"
    image: str = ""

    async def run(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        return await self.inner.run(replace(job, tenant=self.tenant), ends)

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        return await self.inner.open(replace(job, tenant=self.tenant), ends)

    async def end_session(self, session: str) -> None:
        await self.inner.end_session(session)

    async def close(self) -> None:
        await self.inner.close()


@contextmanager
def serving(cluster: Cluster) -> Iterator[tuple[str, Path]]:
    """The API server of the cluster: its address, and the certificate to trust."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            wanted = {"labelSelector": ["app.kubernetes.io/name=sandbox-host"], "limit": ["500"]}
            if address.path != _PODS or parse_qs(address.query) != wanted:
                self._answer(403, {"kind": "Status", "message": "pods is forbidden"})
            else:
                self._answer(200, {"kind": "PodList", "items": cluster.listed()})

        def do_DELETE(self) -> None:
            name = urlsplit(self.path).path.removeprefix(_PODS + "/")
            self._answer(200 if cluster.delete(name) else 404, {"kind": "Status"})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                status, body = 401, {"kind": "Status", "message": "Unauthorized"}
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Silent."""

    files, _ = certificates(days=1, host="localhost")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, files)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://localhost:{server.server_port}", folder / "ca.crt"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def until_listening(pods: Mapping[str, ContainerHost]) -> None:
    """Hosts take a moment to begin."""
    wait_until(lambda: all(map(_listens, list(pods.values()))), 60)


def _listens(pod: ContainerHost) -> bool:
    """As a probe sees it."""
    try:
        socket.create_connection((pod.address, PORT), timeout=1).close()
    except OSError:
        return False
    return True


def _write(folder: Path, files: Mapping[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
