"""Keeping one process alive: restarts, back-off, giving up, stopping, logs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cli.errors import CliError
from cli.logfile import LogFile
from cli.postgres import Launch, wrap
from cli.process import ATTEMPTS, ChildProcess, Program
from tests.polling import until

Keep = Callable[..., ChildProcess]


@pytest.fixture
async def keep(tmp_path: Path) -> AsyncIterator[Keep]:
    """Start a Python one-liner under a `ChildProcess`; all are stopped at the end."""
    started: list[ChildProcess] = []

    def make(code: str, *, up: bool = False, grace: float = 5.0) -> ChildProcess:
        @contextmanager
        def launch() -> Iterator[Launch]:
            yield Launch(wrap([sys.executable, "-SEc", code], signal.SIGKILL))

        all_up = asyncio.Event()
        if up:
            all_up.set()
        kept = ChildProcess(Program("probe", launch, dict(os.environ), grace=grace), LogFile("probe", tmp_path), all_up)
        started.append(kept)
        kept.start()
        return kept

    yield make
    for kept in started:
        await kept.stop()


async def running(kept: ChildProcess, other_than: int | None = None) -> int:
    """The pid once the process runs."""
    await until(lambda: kept.pid not in {None, other_than})
    assert kept.pid is not None
    return kept.pid


async def test_a_killed_process_is_started_again(keep: Keep) -> None:
    kept = keep("import time; time.sleep(60)", up=True)
    first = await running(kept)
    os.kill(first, signal.SIGKILL)
    assert await running(kept, other_than=first) != first


async def test_one_that_cannot_start_gives_up_with_its_last_word(keep: Keep) -> None:
    kept = keep("raise SystemExit('no such colour')")
    assert kept.task is not None
    with pytest.raises(CliError, match="probe does not start: no such colour"):
        await asyncio.wait_for(kept.task, 30)


async def test_a_wrong_setting_is_not_tried_again(keep: Keep, tmp_path: Path) -> None:
    kept = keep("import sys; print('LOCI_X is not set', file=sys.stderr); sys.exit(2)")
    assert kept.task is not None
    with pytest.raises(CliError, match="LOCI_X is not set") as raised:
        await asyncio.wait_for(kept.task, 30)
    assert raised.value.code == 2
    assert (tmp_path / "probe.log").read_text().count("LOCI_X") == 1


async def test_once_all_was_up_it_never_gives_up(keep: Keep, tmp_path: Path) -> None:
    kept = keep("print('again')", up=True)
    async with asyncio.timeout(60):
        while (tmp_path / "probe.log").read_text().count("again") <= ATTEMPTS:
            await asyncio.sleep(0.05)
    assert kept.task is not None
    assert not kept.task.done()


async def test_stopping_asks_then_insists_and_takes_the_group_along(keep: Keep) -> None:
    deaf = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    code = f"{deaf}; os.fork(); time.sleep(60)"
    kept = keep(code, grace=0.3)
    parent = psutil.Process(await running(kept))
    async with asyncio.timeout(30):
        while not (children := parent.children()):
            await asyncio.sleep(0.01)
    await kept.stop()
    psutil.wait_procs(children, timeout=30)
    assert not parent.is_running()
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)


async def test_stopping_during_the_pause_before_a_restart_is_quick(
    keep: Keep, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cli.process.FIRST_PAUSE", 60.0)
    kept = keep("raise SystemExit(1)", up=True, grace=60.0)
    await until(lambda: "starting it again" in capsys.readouterr().err)
    async with asyncio.timeout(30):
        await kept.stop()


def test_a_child_dies_with_its_parent() -> None:
    """The parent is killed; the kernel ends what it wrapped."""
    if not sys.platform.startswith("linux"):
        pytest.skip("parent death signals are Linux's")
    code = (
        "import signal, subprocess, sys, time; from cli.postgres import wrap;"
        "sleep = [sys.executable, '-SEc', 'import time; time.sleep(60)'];"
        "child = subprocess.Popen(wrap(sleep, signal.SIGKILL));"
        "print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _, alive = psutil.wait_procs([child], timeout=30)
    assert not alive or alive[0].status() == psutil.STATUS_ZOMBIE


def test_the_terminal_hears_warnings_and_the_file_has_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = LogFile("agent", tmp_path)
    log.write(b'{"level": "info", "message": "hello"}\n{"level": "warn')
    log.write(b'ing", "message": "careful"}\nplain words\n\xff\n')
    log.close()
    assert capsys.readouterr().err == "agent: warning: careful\n"
    assert (tmp_path / "agent.log").read_bytes().count(b"\n") == 4


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ("", "it said nothing"),
        ("Traceback ...\nValueError: no\n\n", "ValueError: no"),
        ('{"level": "error", "message": "cannot listen"}\n', "cannot listen"),
        (
            "FATAL:  could not open control file\nLOG:  database system is shut down\n",
            "FATAL:  could not open control file",
        ),
    ],
)
def test_the_last_word_of_a_process(tmp_path: Path, lines: str, word: str) -> None:
    log = LogFile("x", tmp_path)
    log.write(lines.encode())
    log.close()
    assert log.last_line() == word


def test_a_long_log_is_turned_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.logfile.LIMIT", 100)
    log = LogFile("x", tmp_path)
    for _ in range(5):
        log.write(b"y" * 60 + b"\n")
    log.close()
    assert (tmp_path / "x.log").stat().st_size <= 122
    assert (tmp_path / "x.log.1").exists()
