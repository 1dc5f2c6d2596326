"""A whole Loci on this machine, as `make run` starts it: the supervisor in a process of its own, on free ports."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from letta_client import Letta

from services.llm_gateway.core.provider_types import TYPES
from tests.e2e.prepared_home import copy_prepared_home
from tests.polling import wait_until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 90.0
# Variables of the developer's shell that would change what is tested, or how long a start takes.
SHELL = ("LOCI_", "LETTA_", "OTEL_", "PYTHONDONTWRITEBYTECODE")
FOREIGN = (*SHELL, *(setting for row in TYPES.values() for setting in row.settings))


@contextmanager
def own_port() -> Iterator[int]:
    """A port of the loopback address that only who is told of it can listen on.

    A socket that never listens holds it: the kernel gives it to nobody who asks for any, and lets a server bind it that
    reuses addresses, as they do.
    """
    with closing(socket.socket()) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def is_listening(port: int) -> bool:
    """Returns whether somebody listens on a port of the loopback address."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def all_gone(processes: list[psutil.Process], within: float = 30.0) -> bool:
    """Waits until processes have ended. Returns whether they did in time."""
    _, alive = psutil.wait_procs(processes, timeout=within)
    return all(process.status() == psutil.STATUS_ZOMBIE for process in alive)


class Stack:
    """One LOCI_HOME with its ports and environment; may be started and stopped again and again."""

    def __init__(self, home: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        held = ExitStack()
        self.port, self.grpc_port = (held.enter_context(own_port()) for _ in range(2))
        weakref.finalize(self, held.close)
        self.url = f"http://127.0.0.1:{self.port}"
        plain = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        own = {"LOCI_HOME": str(home), "LOCI_PORT": str(self.port), "LOCI_GRPC_PORT": str(self.grpc_port)}
        # The engine that CI started, if any; a machine without one runs tools in bubblewrap.
        sandbox = {name: os.environ[name] for name in ("LOCI_SANDBOX", "LOCI_SANDBOX_IMAGE") if name in os.environ}
        self.environment = plain | sandbox | own | dict(environment)
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._clients: list[Letta] = []

    def client(self, *, timeout: float = 30.0, max_retries: int = 0, **options: Any) -> Any:
        """The official client; Any, because its unions say less than its objects do."""
        client = Letta(base_url=self.url, timeout=timeout, max_retries=max_retries, **options)
        self._clients.append(client)
        return client

    def close_clients(self) -> None:
        """Closes the connections of all clients."""
        for client in self._clients:
            client.close()

    def start(self) -> None:
        """Starts everything and waits until it answers."""
        output = (self.home.parent / "output").open("ab")
        with output:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-m", "cli", "run"],
                cwd=ROOT,
                env=self.environment | {"PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.is_ready():
            if self._supervisor.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Loci did not start:\n{self.output()}")
            time.sleep(0.05)

    def is_ready(self) -> bool:
        """Returns whether the supervisor has reported that all is up."""
        return self.output().count("Loci is ready") > self._readied

    _readied = 0

    def output(self) -> str:
        """Returns the supervisor's output."""
        with suppress(FileNotFoundError):
            return (self.home.parent / "output").read_text(errors="replace")
        return ""

    def runs(self) -> bool:
        """Returns whether it was started and not stopped since."""
        return self._supervisor is not None and self._supervisor.poll() is None

    @property
    def supervisor(self) -> psutil.Process:
        """The process of `loci run`."""
        assert self._supervisor is not None
        return psutil.Process(self._supervisor.pid)

    def kill_supervisor(self) -> None:
        """kill -9; what it started is the kernel's to end."""
        assert self._supervisor is not None
        self._supervisor.kill()
        self._supervisor.wait(10)
        self._supervisor = None
        self._readied = self.output().count("Loci is ready")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """SIGTERM, as a service manager would; afterwards no process is left."""
        supervisor = self._supervisor
        self._supervisor = None
        if supervisor is None or supervisor.poll() is not None:
            return
        family = [psutil.Process(supervisor.pid), *psutil.Process(supervisor.pid).children(recursive=True)]
        supervisor.send_signal(number)
        try:
            supervisor.wait(30)
        finally:
            left = psutil.wait_procs(family, timeout=5)[1]
            for process in left:
                process.kill()
        self._readied = self.output().count("Loci is ready")
        if left:
            raise AssertionError(f"left behind: {left}")

    def pid(self, service: str) -> int:
        """The process of a service: "agent", "memory", "llm_gateway", "tool_runner" or "gateway"."""
        found = self._find(service)
        assert found is not None, f"{service} does not run"
        return found

    def _find(self, service: str) -> int | None:
        module = "gateway" if service == "gateway" else f"services.{service}"
        for child in self.supervisor.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                command = child.cmdline()
                if "-m" in command and module in command[command.index("-m") + 1 :][:1]:
                    return child.pid
        return None

    def kill(self, service: str) -> None:
        """kill -9, and waits until the process is gone."""
        process = psutil.Process(wait_until(lambda: self._find(service), problem=lambda: f"{service} does not run"))
        process.kill()
        with suppress(psutil.NoSuchProcess):
            process.wait(20)

    def wait_healthy(self, seconds: float = 60.0) -> None:
        """Waits until the gateway answers."""
        wait_until(self._is_healthy, seconds, problem=lambda: "the gateway does not answer")

    def _is_healthy(self) -> bool:
        try:
            urllib.request.urlopen(f"{self.url}/v1/health/", timeout=10).close()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        return True


@contextmanager
def running(
    environment: Mapping[str, str] | None = None, *, first_start: bool = False, durable: bool = False
) -> Iterator[Stack]:
    """A stack in a folder of its own; afterwards neither processes nor folder are left.

    first_start: with nothing in LOCI_HOME; otherwise there are keys and a database already. durable: its Postgres waits
    for the disk, as it always does after a first start.
    """
    folder = Path(tempfile.mkdtemp(prefix="loci-e2e-"))
    stack = Stack(folder / "home", environment or {})
    if not first_start:
        copy_prepared_home(stack.home, durable=durable)
    try:
        stack.start()
        yield stack
    finally:
        try:
            stack.close_clients()
            stack.stop()
        finally:
            shutil.rmtree(folder)
