"""What the benchmarks share: the report, a fake provider, and the line of figures."""

import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.e2e.stack import ROOT, Stack, free_port, is_listening, running
from tests.polling import wait_until


@dataclass
class Report:
    """What was measured: name -> figure, in the order of measuring."""

    figures: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """One figure, printed at once."""
        self.figures[name] = round(value, 3)
        print(f"  {name:<58}{value:>12.2f}", flush=True)

    def spread(self, name: str, seconds: list[float]) -> float:
        """Median and 95th percentile in ms; returns the median."""
        milliseconds = sorted(1e3 * each for each in seconds)
        median = statistics.median(milliseconds)
        self.add(f"{name}, p50 ms", median)
        self.add(f"{name}, p95 ms", milliseconds[int(0.95 * len(milliseconds))])
        return median


@contextmanager
def fake_provider(*, record: bool = False) -> Iterator[int]:
    """A fake OpenAI in a process of its own; its port. `record`: it keeps what it is sent."""
    port = free_port()
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
        with running(environment) as stack:
            yield stack, port
