"""The container engine through the Docker SDK: blocking, called from threads of the launcher only."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound
from docker.utils import kwargs_from_env

from services.tool_runner.job import ExitReason, Job, Limits, Result, SandboxUnavailable
from services.tool_runner.sandboxes.exchange import AnswerReader, BadWorker, died
from services.tool_runner.sandboxes.launcher.owner import is_dead, own_name
from services.tool_runner.sandboxes.launcher.spec import OWNER_LABEL, SANDBOX_LABEL, container_config

_CALL_SECONDS = 30  # one request to the engine
_START_SECONDS = 20.0
_GRACE_SECONDS = 3.0
_ABANDONED_SECONDS = 4000  # longer than any call: what is older and not ours to judge is nobody's
_CHUNK = 1 << 16


class Engine:
    """One connection to one engine; raises SandboxUnavailable where it does not answer."""

    def __init__(self, image: str) -> None:
        self.image = image
        self._owner = own_name()
        try:
            self._api = docker.APIClient(**kwargs_from_env(), timeout=_CALL_SECONDS, max_pool_size=64)
            self._machine = str(self._api.version()["Arch"])
        except (DockerException, requests.RequestException) as error:
            raise SandboxUnavailable(f"no container engine answers: {error}") from error
        self._machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(self._machine, self._machine)

    def has_image(self) -> bool:
        """Whether the image is there; raises SandboxUnavailable."""
        try:
            self._api.inspect_image(self.image)  # type: ignore[no-untyped-call]
        except ImageNotFound:
            return False
        except (DockerException, requests.RequestException) as error:
            raise SandboxUnavailable(f"the container engine failed: {error}") from error
        return True

    def pull(self, seconds: float) -> str:
        """Fetch the image within that time; gives the problem, or ""."""
        problem = [f"pulling {self.image} took longer than {seconds:g} s"]

        def fetch() -> None:
            try:
                for _ in self._api.pull(self.image, stream=True, decode=True):
                    pass
                problem[0] = ""
            except (DockerException, requests.RequestException) as error:
                problem[0] = f"pulling {self.image} failed: {error}"

        thread = threading.Thread(target=fetch, daemon=True)
        thread.start()
        thread.join(seconds)
        return problem[0]

    def reap(self) -> None:
        """Remove the containers of dead launchers, and those that nobody can still be waiting for."""
        with contextlib.suppress(DockerException, requests.RequestException):
            for container in self._api.containers(all=True, filters={"label": f"{SANDBOX_LABEL}=1"}):
                dead = is_dead(container["Labels"].get(OWNER_LABEL, ""))
                age = datetime.now(UTC).timestamp() - container["Created"]
                if dead or (dead is None and age > _ABANDONED_SECONDS):
                    self.remove(container["Id"])

    def start(self, limits: Limits) -> "Worker":
        """A fresh container whose worker said hello; raises SandboxUnavailable, and leaves nothing then."""
        identity = ""
        try:
            config = container_config(self.image, self._machine, limits, self._owner)
            created = self._api.create_container_from_config(config)  # type: ignore[no-untyped-call]
            identity = str(created["Id"])
            parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            stream = _as_socket(self._api.attach_socket(identity, params=parameters))
            self._api.start(identity)
            worker = Worker(self, identity, stream)
            worker.greet()
        except ImageNotFound as error:
            raise SandboxUnavailable(f"the engine has no image {self.image}") from error
        except (DockerException, requests.RequestException, OSError, BadWorker, EOFError) as error:
            if identity:
                self.remove(identity)
            raise SandboxUnavailable(f"a sandbox could not be started from {self.image}: {error}") from error
        return worker

    def kill(self, identity: str) -> None:
        """Kill a container that may have ended by itself."""
        with contextlib.suppress(APIError, requests.RequestException):
            self._api.kill(identity)

    def remove(self, identity: str) -> None:
        """Remove a container, running or not; one that is gone is no error."""
        with contextlib.suppress(NotFound, APIError, requests.RequestException):
            self._api.remove_container(identity, force=True, v=True)

    def ran_out_of_memory(self, identity: str) -> bool:
        """Whether the kernel killed a process of the container for its memory; known once it has ended."""
        with contextlib.suppress(APIError, requests.RequestException):
            self._api.wait(identity, timeout=_CALL_SECONDS)
            return bool(self._api.inspect_container(identity)["State"]["OOMKilled"])
        return False


class Worker:
    """A container with a worker in it, good for one call."""

    def __init__(self, engine: Engine, identity: str, stream: socket.socket) -> None:
        self.identity = identity
        self._engine = engine
        self._stream = stream
        self._reader = AnswerReader()
        self._errors = ""

    def greet(self) -> None:
        """Wait for the hello; raises BadWorker, OSError or EOFError."""
        for name, chunk in self._frames(time.monotonic() + _START_SECONDS):
            self._take(name, chunk)
            if self._reader.ready:
                return
        raise EOFError(f"its worker ended at once: {self._errors.strip() or 'no message'}")

    def serve(self, job: Job) -> Result:
        """Run the one call; every way it can end is a result."""
        deadline = time.monotonic() + job.limits.seconds + _GRACE_SECONDS
        try:
            self._stream.settimeout(_START_SECONDS)
            self._stream.sendall(self._reader.expect(job))
            for name, chunk in self._frames(deadline):
                self._take(name, chunk)
                if self._reader.result:
                    return self._blame_memory(self._reader.result, job.limits)
            result = died(ExitReason.KILLED, "the sandbox ended without an answer")
        except TimeoutError:
            result = died(ExitReason.TIMEOUT, f"no result after {job.limits.seconds:g} s")
        except (OSError, BadWorker) as error:
            result = died(ExitReason.KILLED, f"the sandbox was lost: {error}")
        return self._blame_memory(result, job.limits)

    def kill(self) -> None:
        """End it now; `serve` in another thread then returns."""
        self._engine.kill(self.identity)

    def remove(self) -> None:
        """Leave nothing of it."""
        self._engine.remove(self.identity)
        self._stream.close()

    def _take(self, name: str, chunk: bytes) -> None:
        if name == "stdout":
            self._reader.feed(chunk)
        else:
            self._errors = (self._errors + chunk.decode("utf-8", "replace"))[-2000:]

    def _frames(self, deadline: float) -> Iterator[tuple[str, bytes]]:
        """The attached stream: per frame one byte of stream number, three of nothing, four of length."""
        buffer = b""
        while True:
            while len(buffer) >= 8 and len(buffer) >= 8 + (size := int.from_bytes(buffer[4:8], "big")):
                chunk, number = buffer[8 : 8 + size], buffer[0]
                buffer = buffer[8 + size :]
                yield ("stdout" if number == 1 else "stderr"), chunk
            self._stream.settimeout(max(0.001, deadline - time.monotonic()))
            received = self._stream.recv(_CHUNK)
            if not received:
                return
            buffer += received

    def _blame_memory(self, result: Result, limits: Limits) -> Result:
        """A process that the kernel killed for its memory only looks killed from inside."""
        if result.reason is not ExitReason.KILLED or not self._engine.ran_out_of_memory(self.identity):
            return result
        message = f"the tool used more memory than its limit of {limits.memory} bytes"
        return died(ExitReason.MEMORY, message, of=result)


def _as_socket(attached: object) -> socket.socket:
    """The SDK gives a TLS socket as it is, a plain one wrapped in a file whose descriptor is taken here."""
    if isinstance(attached, socket.socket):
        return attached
    return socket.socket(fileno=os.dup(attached.fileno()))  # type: ignore[attr-defined]
