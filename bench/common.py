"""Parts that the benchmarks share: the report of figures, a fake provider, ways into a running Loci."""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cli.home import Home
from cli.names import DATABASE
from cli.postgres import SUPERUSER, url
from cli.secrets import SIGNING_KEY, passwords
from services.common.context import Signer
from services.common.keys import signer_from
from services.common.settings import Env
from tests.e2e.stack import ROOT, Stack, is_listening, own_port, running
from tests.polling import wait_until


@dataclass
class Report:
    """The figures by name, in the order of measuring."""

    figures: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """Records one figure and prints it."""
        self.figures[name] = round(value, 3)
        print(f"  {name:<58}{value:>12.2f}", flush=True)

    def spread(self, name: str, seconds: list[float]) -> float:
        """Records the median and the 95th percentile in ms; returns the median."""
        milliseconds = sorted(1e3 * each for each in seconds)
        median = statistics.median(milliseconds)
        self.add(f"{name}, p50 ms", median)
        self.add(f"{name}, p95 ms", milliseconds[int(0.95 * len(milliseconds))])
        return median


def superuser_url(home: Home) -> str:
    """Returns the URL of the embedded Postgres' superuser."""
    return url(home.sockets / "postgres", SUPERUSER, passwords(home.secrets)[SUPERUSER], DATABASE)


def context_signer(home: Home) -> Signer:
    """Returns a signer with the key of a running Loci."""
    return signer_from(Env({"LOCI_CONTEXT_SIGNING_KEY": str(home.secrets / SIGNING_KEY)}))


@contextmanager
def fake_provider(*, record: bool = False) -> Iterator[int]:
    """A fake OpenAI in a process of its own; its port. `record`: it keeps what it is sent."""
    with own_port() as port:
        command = [sys.executable, "-m", "tests.fakes.openai_server", "--port", str(port)]
        command += [] if record else ["--no-record"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: is_listening(port))
            yield port
        finally:
            process.terminate()
            process.wait(10)


@contextmanager
def loci_with_provider(*, record: bool = False) -> Iterator[tuple[Stack, int]]:
    """A whole Loci before a fake OpenAI, and the port of that; see `fake_provider`."""
    with fake_provider(record=record) as port:
        environment = {"OPENAI_API_KEY": "sk-bench", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
        with running(environment, durable=True) as stack:
            yield stack, port
