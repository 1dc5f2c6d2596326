"""The embedded Postgres' data directory: made, found again, damaged, left behind by a crash."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from cli.errors import CliError
from cli.postgres import Cluster


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory as initdb leaves it, under folders that only we may enter."""
    folder = tmp_path_factory.mktemp("made")
    Cluster(folder / "postgres", folder / "sockets").prepare("secret")
    return folder


@pytest.fixture
def cluster(made: Path, tmp_path: Path) -> Cluster:
    """A copy of it to break."""
    subprocess.run(["cp", "-a", str(made / "postgres"), str(tmp_path)], check=True)
    return Cluster(tmp_path / "postgres", tmp_path / "sockets")


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It, running."""
    assert cluster.prepare("ignored") is False
    process = start(cluster, tmp_path / "log")
    yield process
    process.send_signal(signal.SIGINT)
    process.wait(60)


def start(cluster: Cluster, log: Path) -> subprocess.Popen[bytes]:
    with cluster.launch() as launch, log.open("ab") as output:
        process = subprocess.Popen(launch.argv, pass_fds=launch.descriptors, stderr=output, cwd="/")
    deadline = time.monotonic() + 60
    while not cluster.ready() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return process


def test_the_folders_above_keep_their_modes(tmp_path: Path) -> None:
    above = tmp_path / "closed" / "home"
    above.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "closed", above):
        folder.chmod(0o700)
    Cluster(above / "postgres", above / "sockets").prepare("secret")
    for folder in (tmp_path, tmp_path / "closed", above, above / "postgres", above / "sockets"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not list((above / "sockets").iterdir())


def test_the_password_reaches_no_command_line_and_no_file(made: Path) -> None:
    found = subprocess.run(["grep", "-rlF", "secret", str(made)], capture_output=True, text=True, check=False)
    assert found.stdout == ""


@pytest.mark.parametrize("text", ["garbage", "16", "", "\x00\xff"])
def test_another_version_or_garbage_is_named(cluster: Cluster, text: str) -> None:
    (cluster.data / "PG_VERSION").write_text(text)
    with pytest.raises(CliError, match=r"damaged \(PG_VERSION says .*expected '18'\): restore"):
        cluster.prepare("x")


def test_a_directory_without_a_version_is_named(cluster: Cluster) -> None:
    (cluster.data / "PG_VERSION").unlink()
    with pytest.raises(CliError, match="PG_VERSION cannot be read"):
        cluster.prepare("x")


def test_a_start_cut_off_during_initdb_is_begun_anew(cluster: Cluster) -> None:
    cluster.data.rename(cluster.data.with_name("postgres.new"))
    (cluster.data.with_name("postgres.new") / "PG_VERSION").unlink()
    assert cluster.prepare("x") is True
    assert not cluster.data.with_name("postgres.new").exists()


def test_the_lock_file_of_a_dead_server_does_not_stop_the_next(cluster: Cluster, tmp_path: Path) -> None:
    # After a reboot the process id may be anybody's, for instance ours.
    (cluster.data / "postmaster.pid").write_text(f"{os.getpid()}\n{cluster.data}\n1\n5432\n\n\n\nready\n")
    cluster.prepare("x")
    process = start(cluster, tmp_path / "log")
    assert cluster.ready()
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0


def test_a_killed_server_starts_again(cluster: Cluster, server: subprocess.Popen[bytes], tmp_path: Path) -> None:
    children = psutil.Process(server.pid).children()
    server.kill()
    server.wait()
    psutil.wait_procs(children, timeout=60)
    cluster.prepare("x")
    again = start(cluster, tmp_path / "log")
    assert cluster.ready()
    again.send_signal(signal.SIGINT)
    assert again.wait(60) == 0


def test_a_server_that_still_stops_is_waited_for(cluster: Cluster, server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)
    cluster.prepare("x")
    assert not (cluster.data / "postmaster.pid").exists()
    assert not psutil.Process(server.pid).is_running() or server.wait(20) == 0


def test_missing_files_are_postgres_to_tell(cluster: Cluster, tmp_path: Path) -> None:
    shutil.rmtree(cluster.data / "global")
    cluster.prepare("x")
    process = start(cluster, tmp_path / "log")
    assert process.wait(60) != 0
    assert "FATAL" in (tmp_path / "log").read_text() or "could not" in (tmp_path / "log").read_text()
