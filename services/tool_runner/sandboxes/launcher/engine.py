"""The container engine through the Docker SDK: blocking, called from threads of the launcher only."""

import contextlib
import io
import os
import socket
import tarfile
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import kwargs_from_env

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.launcher.owner import is_dead, own_name
from services.tool_runner.sandboxes.launcher.spec import (
    LAYER_LABEL,
    OWNER_LABEL,
    SANDBOX_LABEL,
    ContainerRequest,
    container_config,
    layer_image,
)

_CALL_SECONDS = 30  # one request to the engine
_BUILD_SECONDS = 300
_ABANDONED_SECONDS = 90_000  # longer than anything runs: what is older and not ours to judge is nobody's
_STOPPED_SECONDS = 600  # its launcher, wherever that is, would have removed a stopped one by then
_MOST_LAYERS = 50
_FAILURES = (DockerException, requests.RequestException)
_ATTACHED = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
_LAYER_DOCKERFILE = "FROM {base}\nADD layer.tar /opt/loci/layer/\n"


class NoLayer(Exception):
    """The engine has no image with that layer: it is to be added first."""


class Container:
    """A started container, and the socket of its stdin, stdout and stderr."""

    def __init__(self, identity: str, attached: socket.socket) -> None:
        self.identity = identity
        self.attached = attached


class Engine:
    """One engine, where `image` is what containers are made of; raises SandboxUnavailable where none answers."""

    def __init__(self, image: str, runtime: str) -> None:
        self.image = image
        self._runtime = runtime
        self._owner = own_name()
        self._layers_used: dict[str, float] = {}
        self._building = threading.Lock()
        try:
            self._api = docker.APIClient(**kwargs_from_env(), timeout=_CALL_SECONDS, max_pool_size=64)
            machine = str(self._api.version()["Arch"])
        except _FAILURES as error:
            raise SandboxUnavailable(f"no container engine answers: {error}") from error
        self._machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)

    def check_runtime(self) -> None:
        """Raises SandboxUnavailable where the engine has not the runtime that was asked for."""
        if not self._runtime:
            return
        try:
            known = sorted(self._api.info().get("Runtimes") or {})
        except _FAILURES as error:
            raise SandboxUnavailable(f"the container engine failed: {error}") from error
        if self._runtime not in known:
            raise SandboxUnavailable(
                f"the container engine has no runtime {self._runtime} (LOCI_SANDBOX_RUNTIME); it has {', '.join(known)}"
            )

    def has_image(self) -> bool:
        """Returns whether the image is there; raises SandboxUnavailable."""
        try:
            self._base()
        except ImageNotFound:
            return False
        except _FAILURES as error:
            raise SandboxUnavailable(f"the container engine failed: {error}") from error
        return True

    def pull(self, seconds: float) -> str:
        """Fetches the image within that time; returns the problem, or ""."""
        problem = [f"pulling {self.image} took longer than {seconds:g} s"]

        def fetch() -> None:
            try:
                for _ in self._api.pull(self.image, stream=True, decode=True):
                    pass
                problem[0] = ""
            except _FAILURES as error:
                problem[0] = f"pulling {self.image} failed: {error}"

        thread = threading.Thread(target=fetch, daemon=True)
        thread.start()
        thread.join(seconds)
        return problem[0]

    def reap(self) -> None:
        """Removes the containers of dead launchers, those that nobody can still wait for, and the oldest layers."""
        with contextlib.suppress(*_FAILURES):
            for container in self._api.containers(all=True, filters={"label": f"{SANDBOX_LABEL}=1"}):
                dead = is_dead(container["Labels"].get(OWNER_LABEL, ""))
                age = datetime.now(UTC).timestamp() - container["Created"]
                longest = _ABANDONED_SECONDS if container["State"] == "running" else _STOPPED_SECONDS
                if dead or (dead is None and age > longest):
                    self.remove(container["Id"])
        self._drop_old_layers()

    def start(self, request: ContainerRequest) -> Container:
        """Returns a fresh container, attached to; raises SandboxUnavailable or NoLayer, and leaves nothing then."""
        identity = ""
        try:
            image = self._layer_image(request.layer) if request.layer else self.image
            config = container_config(image, self._machine, request, self._owner, self._runtime)
            # Three requests are the fewest: what a container prints before it is attached to is lost.
            created = self._api.create_container_from_config(config)  # type: ignore[no-untyped-call]
            identity = str(created["Id"])
            attached = _as_socket(self._api.attach_socket(identity, params=_ATTACHED))
            self._api.start(identity)
        except ImageNotFound as error:
            if request.layer:
                raise NoLayer from error
            raise SandboxUnavailable(f"the engine has no image {self.image}") from error
        except (*_FAILURES, OSError) as error:
            if identity:
                self.remove(identity)
            raise SandboxUnavailable(f"a sandbox could not be started from {self.image}: {error}") from error
        return Container(identity, attached)

    def remove(self, identity: str) -> None:
        """Kills and removes a container; one that is gone is no error."""
        with contextlib.suppress(NotFound, APIError, requests.RequestException):
            self._api.remove_container(identity, force=True, v=True)

    def ran_out_of_memory(self, identity: str) -> bool:
        """Returns whether the kernel killed a process of an ended container for its memory."""
        with contextlib.suppress(APIError, requests.RequestException):
            self._api.wait(identity, timeout=_CALL_SECONDS)
            return bool(self._api.inspect_container(identity)["State"]["OOMKilled"])
        return False

    def add_layer(self, key: str, archive: Path) -> None:
        """Makes the image of that layer, if it is not there: files are added, no code of it runs.

        Raises SandboxUnavailable.
        """
        with self._building:
            try:
                base = self._base()
                name = layer_image(key, base)
                if not self._api.images(name=name, quiet=True):
                    self._build(name, base, key, archive)
            except (*_FAILURES, OSError, ValueError) as error:
                raise SandboxUnavailable(f"the packages could not be put into an image: {error}") from error
            self._layers_used[name] = time.time()
        self._drop_old_layers()

    def _build(self, name: str, base: str, key: str, archive: Path) -> None:
        with tempfile.TemporaryFile() as context:
            _write_context(context, _LAYER_DOCKERFILE.format(base=base), archive)
            messages = self._api.build(
                fileobj=context, custom_context=True, tag=name, labels={LAYER_LABEL: key}, network_mode="none",
                rm=True, forcerm=True, decode=True, timeout=_BUILD_SECONDS,
            )  # fmt: skip
            for line in messages:
                if "error" in line:
                    raise DockerException(line["error"])

    def _layer_image(self, layer: str) -> str:
        try:
            name = layer_image(layer, self._base())
        except ValueError as error:
            raise SandboxUnavailable(str(error)) from error
        self._layers_used[name] = time.time()
        return name

    def _drop_old_layers(self) -> None:
        """Keeps the layers used last; whoever needs a removed one adds it again. Those in use stay."""
        with contextlib.suppress(*_FAILURES):
            images = self._api.images(filters={"label": LAYER_LABEL})
            for image in sorted(images, key=self._last_used)[: max(0, len(images) - _MOST_LAYERS)]:
                for name in image["RepoTags"] or [image["Id"]]:
                    with contextlib.suppress(*_FAILURES):
                        self._api.remove_image(name)

    def _last_used(self, image: dict[str, object]) -> float:
        tags: list[str] = image["RepoTags"] or []  # type: ignore[assignment]
        return max([float(str(image["Created"])), *(self._layers_used.get(tag, 0.0) for tag in tags)])

    def _base(self) -> str:
        """Returns the image's id: another one than the last after it was built anew."""
        return str(self._api.inspect_image(self.image)["Id"])  # type: ignore[no-untyped-call]


def _write_context(target: IO[bytes], dockerfile: str, archive: Path) -> None:
    with tarfile.open(fileobj=target, mode="w") as context:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(dockerfile)
        context.addfile(entry, io.BytesIO(dockerfile.encode()))
        context.add(archive, "layer.tar", recursive=False)
    target.seek(0)


def _as_socket(attached: object) -> socket.socket:
    """Returns the socket of a stream: the SDK gives TLS as it is, a plain one wrapped in a file."""
    if isinstance(attached, socket.socket):
        return attached
    return socket.socket(fileno=os.dup(attached.fileno()))  # type: ignore[attr-defined]
