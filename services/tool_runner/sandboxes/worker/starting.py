"""Starts the three kinds of tool processes, each behind its pipes."""

import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from .tool import fork_program, fork_python

_HEAP_SHARE = 0.75  # of a worker's memory, for Node's heap
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ENTRY = os.path.join(_HOME, "node", "entry.mjs")
_PROXY = os.path.join(_HOME, "node", "program.cjs")
_LAYER_PATHS = {"PYTHONPATH": "layer/python", "NODE_PATH": "layer/node_modules"}
_LAYER_PROGRAMS = ("layer/python/bin", "layer/node_modules/.bin")


class ToolProcess:
    """A process, and our ends of its pipes; None where it has no such pipe. `feed`: its stdin, or the job for Node."""

    def __init__(self, child: int, stdout: int, stderr: int, *, feed: int | None, outcome: int | None) -> None:
        self.child = child
        self.stdout = stdout
        self.stderr = stderr
        self.feed = feed
        self.outcome = outcome

    def discard(self) -> None:
        """Discards it: it is not needed after all."""
        os.kill(self.child, signal.SIGKILL)
        for descriptor in (self.stdout, self.stderr, self.feed, self.outcome):
            if descriptor is not None:
                os.close(descriptor)


def layer_environment() -> dict[str, str]:
    """Returns the variables by which programs find the packages of the sandbox's layer; none where it has none."""
    found = {name: path for name, part in _LAYER_PATHS.items() if os.path.isdir(path := os.path.join(_HOME, part))}
    programs = [path for part in _LAYER_PROGRAMS if os.path.isdir(path := os.path.join(_HOME, part))]
    return found | ({"PATH": ":".join((*programs, os.environ.get("PATH", os.defpath)))} if programs else {})


def node_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variable that leads a program's Node, and each that it starts, to the proxy; none without Node."""
    if not os.path.isfile(_PROXY):
        return {}
    return {"NODE_OPTIONS": f"--require={_PROXY} {environment.get('NODE_OPTIONS', '')}".strip()}


def start_python(job: dict[str, Any], environment: Mapping[str, str]) -> ToolProcess:
    """Returns a copy of the keeper that runs the job's source."""
    return _start(lambda ends: fork_python(job, environment, ends), outcome_at=3)


def start_program(argv: list[str], environment: Mapping[str, str], limits: Mapping[str, Any]) -> ToolProcess:
    """Returns a program with its three usual streams."""
    return _start(lambda ends: fork_program(argv, environment, ends, limits), feed_at=0)


def start_node(environment: Mapping[str, str], memory: int) -> ToolProcess:
    """Starts Node with our entry, which reads a job on descriptor 3 and leaves its outcome on 4; yet to be limited.

    `memory` in bytes, 0: any.
    """
    heap = [f"--max-old-space-size={max(32, int(memory * _HEAP_SHARE) >> 20)}"] if memory else []
    return _start(lambda ends: fork_program(["node", *heap, _ENTRY], environment, ends, None), feed_at=3, outcome_at=4)


def _start(
    fork: Callable[[Mapping[int, int]], int], *, feed_at: int | None = None, outcome_at: int | None = None
) -> ToolProcess:
    theirs = {0: os.open(os.devnull, os.O_RDONLY)}
    ours: dict[int, int] = {}
    for number in (1, 2, outcome_at):
        if number is not None:
            ours[number], theirs[number] = os.pipe()
    if feed_at is not None:
        if feed_at in theirs:
            os.close(theirs[feed_at])
        theirs[feed_at], ours[feed_at] = os.pipe()
    child = fork(theirs)
    for descriptor in theirs.values():
        os.close(descriptor)
    for descriptor in ours.values():
        os.set_blocking(descriptor, False)
    feed = ours[feed_at] if feed_at is not None else None
    outcome = ours[outcome_at] if outcome_at is not None else None
    return ToolProcess(child, ours[1], ours[2], feed=feed, outcome=outcome)
