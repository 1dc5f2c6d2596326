"""`loci run` from outside: ready, killed, started again, stopped, and the starts it refuses."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cli.names import SERVICES
from tests.e2e.stack import Stack, all_gone, running
from tests.postgres import Postgres

ALL = {"postgres", "gateway", *SERVICES}


@pytest.fixture(scope="module")
def made() -> Iterator[Stack]:
    """One home for the module: only its first start makes a database."""
    with running(first_start=True) as stack:
        yield stack


@pytest.fixture
def loci(made: Stack) -> Stack:
    """It, running."""
    if not made.runs():
        made.start()
    return made


def children(loci: Stack) -> dict[str, psutil.Process]:
    """Name -> process of what the supervisor keeps alive."""
    found = {}
    for child in loci.supervisor.children():
        with suppress(psutil.NoSuchProcess):  # it was just killed
            last = child.cmdline()[-1:] or ["ending"]
            found["postgres" if child.name() == "postgres" else last[0].removeprefix("services.")] = child
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_runs_six_processes_and_stops_without_a_trace(loci: Stack, number: signal.Signals) -> None:
    loci.wait_healthy()
    assert set(children(loci)) == ALL
    loci.stop(number)  # which asserts that no process is left
    assert not [path for path in (loci.home / "run").rglob("*") if path.is_socket()]
    with socket.create_server(("127.0.0.1", loci.port)):
        pass


def test_what_it_keeps_is_closed_to_others(loci: Stack) -> None:
    for name in ("postgres", "run", "secrets", "logs", "run/postgres"):
        assert stat.S_IMODE((loci.home / name).stat().st_mode) == 0o700, name
    for path in (loci.home / "secrets").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_no_secret_is_on_a_command_line_or_in_a_log(loci: Stack) -> None:
    secrets = json.loads((loci.home / "secrets" / "database-passwords.json").read_text()).values()
    texts = [" ".join(process.cmdline()) for process in loci.supervisor.children(recursive=True)]
    texts += [path.read_text(errors="replace") for path in (loci.home / "logs").iterdir()]
    texts.append(loci.output())
    assert not [secret for secret in secrets for text in texts if secret in text]


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_killed_process_comes_back(loci: Stack, name: str) -> None:
    before = children(loci)[name]
    before.kill()
    deadline = time.monotonic() + 60
    while (now := children(loci).get(name, before)).pid == before.pid and time.monotonic() < deadline:
        time.sleep(0.05)
    assert now.pid != before.pid  # one look: at the exec of its program a process has no command line
    loci.wait_healthy()


def test_when_the_supervisor_is_killed_everything_dies_and_the_next_start_works(loci: Stack) -> None:
    family = loci.supervisor.children(recursive=True)
    loci.kill_supervisor()
    loci.start()  # at once: the old ones may still be ending
    assert all_gone(family)
    loci.wait_healthy()


def test_a_second_one_on_the_same_home_is_refused(loci: Stack, tmp_path: Path) -> None:
    status, said = refused(Stack(loci.home, {}))
    assert (status, said) == (
        1,
        f"loci: Loci already runs on LOCI_HOME={loci.home} (process {loci.supervisor.pid})\n",
    )
    loci.wait_healthy()


def test_missing_files_of_the_database_are_told_in_one_line(loci: Stack) -> None:
    loci.stop()
    control = loci.home / "postgres" / "global" / "pg_control"
    control.rename(control.with_name("away"))
    try:
        status, said = refused(loci)
    finally:
        control.with_name("away").rename(control)
    assert status != 0
    assert "postgres does not start" in said.splitlines()[-1]
    assert f"if {loci.home}/postgres is damaged, restore it" in said.splitlines()[-1]
    assert "Traceback" not in said


def test_an_external_database_takes_the_place_of_the_embedded_one(postgres: Postgres, tmp_path: Path) -> None:
    name = postgres.create_database("template0")
    loci = Stack(tmp_path / "home", {"LOCI_DATABASE_URL": postgres.superuser_url(name)})
    loci.start()
    try:
        assert set(children(loci)) == ALL - {"postgres"}
        assert not (loci.home / "postgres").exists()
        loci.wait_healthy()
    finally:
        loci.stop()
        postgres.drop_database(name)


def test_a_home_too_deep_for_sockets_works(tmp_path: Path) -> None:
    loci = Stack(tmp_path / ("deep" * 30), {})
    loci.start()
    try:
        loci.wait_healthy()
    finally:
        loci.stop()


def refused(loci: Stack) -> tuple[int, str]:
    """(exit status, what it said on stderr) of a start that fails."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", "run"],
        env=loci.environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stderr


def one_line(text: str) -> bool:
    return text.count("\n") == 1 and text.startswith("loci: ")


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, said = refused(Stack(tmp_path / "home", {"LOCI_PORT": str(taken.getsockname()[1])}))
    assert (status, one_line(said)) == (1, True)
    assert "set LOCI_PORT" in said


def test_a_damaged_data_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home" / "postgres").mkdir(parents=True)
    (tmp_path / "home" / "postgres" / "PG_VERSION").write_text("garbage")
    status, said = refused(Stack(tmp_path / "home", {}))
    assert (status, one_line(said)) == (1, True)
    assert "garbage" in said


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    status, said = refused(Stack(tmp_path / "home", {}))
    assert (status, one_line(said)) == (2, True)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("LOCI_HOST", "0.0.0.0"), ("LOCI_PORT", "many"), ("LOCI_DATABASE_URL", "postgresql://x@127.0.0.1:1/x")],
)
def test_a_wrong_setting_is_refused(tmp_path: Path, variable: str, value: str) -> None:
    status, said = refused(Stack(tmp_path / "home", {variable: value}))
    assert status == 2
    assert one_line(said)
    assert variable in said
