"""One process under the supervisor: started by exec, kept alive, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from cli.errors import CliError
from cli.logfile import LogFile
from cli.postgres import Launch

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before a dead process is started again
STEADY = 10.0  # seconds after which a process counts as well
ATTEMPTS = 5
WRONG_SETTING = 2  # the exit status that no repetition mends


@dataclass(frozen=True)
class Program:
    """A program to run. `grace`: seconds between the request to stop and SIGKILL. `advice` follows a failed start."""

    name: str
    launch: Callable[[], AbstractContextManager[Launch]]
    environment: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    grace: float = 8.0
    advice: str = ""


class ChildProcess:
    """A program that is started again whenever it ends, until `stop`."""

    def __init__(self, program: Program, log: LogFile, all_up: asyncio.Event) -> None:
        self._program = program
        self._log = log
        self._all_up = all_up
        self._stopping = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The program's name."""
        return self._program.name

    @property
    def pid(self) -> int | None:
        """The id of the running process; None where none runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    @property
    def last_line(self) -> str:
        """The last line the process wrote."""
        return self._log.last_line()

    def start(self) -> asyncio.Task[None]:
        """Keep it running in the background. The task raises CliError when it cannot be brought up."""
        self.task = asyncio.create_task(self._keep(), name=self.name)
        return self.task

    async def stop(self) -> None:
        """Ask it to end, insist after its grace, and leave nothing of its process group behind."""
        self._stopping.set()
        if self.pid is not None:
            self._signal(self._program.stop_signal)
        if self.task is not None:
            done, _ = await asyncio.wait({self.task}, timeout=self._program.grace)
            if not done:
                self._signal(signal.SIGKILL)
            with suppress(CliError):
                await self.task
        self._log.close()

    async def _keep(self) -> None:
        pause, failures = FIRST_PAUSE, 0
        while not self._stopping.is_set():
            began = time.monotonic()
            status = await self._run_once()
            if self._stopping.is_set():
                return
            if time.monotonic() - began > STEADY:
                pause, failures = FIRST_PAUSE, 0
            failures += 1
            if not self._all_up.is_set() and (status == WRONG_SETTING or failures == ATTEMPTS):
                raise CliError(
                    f"{self.name} does not start: {self.last_line}{self._program.advice}", code=max(status, 1)
                )
            print(f"{self.name} {_ending(status)}; starting it again", file=sys.stderr, flush=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _run_once(self) -> int:
        with self._program.launch() as launch, self._logging() as output:
            process = await asyncio.create_subprocess_exec(
                *launch.argv,
                pass_fds=launch.descriptors,
                env=dict(self._program.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C is for the supervisor, which stops the others in order
                cwd="/",
            )
            self._process = process
            if self._stopping.is_set():  # asked to stop while it was being made
                self._signal(self._program.stop_signal)
            status = await process.wait()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return status

    @contextmanager
    def _logging(self) -> Iterator[int]:
        """A pipe into the log. Our own: with asyncio's, `wait` would wait for grandchildren, too."""
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        loop = asyncio.get_running_loop()
        loop.add_reader(reading, self._read, reading)
        try:
            yield writing
        finally:
            os.close(writing)
            self._read(reading)
            loop.remove_reader(reading)
            os.close(reading)

    def _read(self, reading: int) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(reading, 65536):
                self._log.write(chunk)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)


def _ending(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"
