"""A container engine for tests: that of DOCKER_HOST, else one started here that ends with the session."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
BASE, IMAGE = "loci-base:test", "loci-sandbox:test"
_START_SECONDS, _BUILD_SECONDS = 60.0, 180


@contextmanager
def container_engine() -> Iterator[dict[str, str]]:
    """The environment that reaches an engine with the sandbox image; skips where there can be none."""
    if shutil.which("docker") is None:
        pytest.skip("no docker command (package docker.io)")
    if os.environ.get("DOCKER_HOST"):
        environment = dict(os.environ)
        _build(environment)
        yield environment
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        pytest.skip("no container engine: DOCKER_HOST is not set, and dockerd is not installed or needs root")
    with (
        tempfile.TemporaryDirectory(prefix="loci-engine-", dir="/tmp", ignore_cleanup_errors=True) as folder,
        _dockerd(Path(folder)) as socket,
    ):
        environment = dict(os.environ) | {"DOCKER_HOST": f"unix://{socket}"}
        _build(environment)
        yield environment


@contextmanager
def _dockerd(folder: Path) -> Iterator[Path]:
    """Without a bridge or packet filter: sandboxes have no network, and the host's own stays as it is."""
    socket, log = folder / "socket", folder / "log"
    with log.open("wb") as output:
        daemon = subprocess.Popen(
            [
                "dockerd",
                f"--data-root={folder}/data",
                f"--exec-root={folder}/exec",
                f"--host=unix://{socket}",
                f"--pidfile={folder}/pid",
                "--bridge=none",
                "--iptables=false",
                "--ip6tables=false",
            ],
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + _START_SECONDS
        while not _answers(socket):
            if daemon.poll() is not None or time.monotonic() > until:
                pytest.skip(f"dockerd does not start here: {log.read_text()[-300:]}")
            time.sleep(0.1)
        yield socket
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(_START_SECONDS)


def _answers(socket: Path) -> bool:
    command = ["docker", "-H", f"unix://{socket}", "version"]
    return socket.exists() and subprocess.run(command, capture_output=True, check=False).returncode == 0


def _build(environment: dict[str, str]) -> None:
    """The image of this tree, on a base made of Debian packages; CI has made both already."""
    if ready := os.environ.get("LOCI_TEST_SANDBOX"):
        copy_image(ready, IMAGE, environment)
        return
    have = subprocess.run(["docker", "image", "inspect", BASE], env=environment, capture_output=True, check=False)
    base = [] if have.returncode == 0 else [[str(SCRIPTS / "local-base"), BASE]]
    for step in [*base, [str(SCRIPTS / "sandbox-image"), BASE, IMAGE]]:
        done = subprocess.run(
            step, env=environment, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"{step[0]} failed: {(done.stderr or done.stdout)[-300:]}")


def copy_image(image: str, name: str, environment: Mapping[str, str]) -> None:
    """Makes an image that does what another does and is another one: its containers can be told from the other's."""
    subprocess.run(
        ["docker", "build", "--quiet", f"--label=loci.test={uuid.uuid4()}", f"--tag={name}", "-"],
        env={**environment, "DOCKER_BUILDKIT": "0"},
        input=f"FROM {image}\n",
        capture_output=True,
        text=True,
        timeout=_BUILD_SECONDS,
        check=True,
    )


def containers(environment: dict[str, str], launcher: int | None = None, *, running: bool = False) -> list[str]:
    """Ids of every sandbox container, running or not, or of the running ones; or of those that one launcher made."""
    filters = ["--filter", "label=loci.sandbox=1", "--filter", f"ancestor={IMAGE}"]
    command = ["docker", "ps", *([] if running else ["--all"]), *filters, '--format={{.ID}} {{.Label "loci.owner"}}']
    lines = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[0] for line in lines if launcher is None or f"/{launcher}/" in line]
