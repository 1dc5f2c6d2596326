"""The keeper: takes a job, watches its process, sends what comes out of it, answers. Process 1 of the sandbox."""

import json
import os
import select
import sys
from typing import Any

from . import files, frames, tool
from .call import Call
from .frames import StreamEnded, Wire
from .outcome import Outcome, failure, frame
from .relay import Door, Relay
from .starting import ToolProcess, layer_environment, start_node


class Keeper:
    """One worker's life: `serve` says hello and ends when the runner does."""

    def __init__(self, wire: Wire, relay: Relay, *, language: str, memory: int) -> None:
        self._wire = wire
        self._relay = relay
        self._language = language
        self._memory = memory
        self._node: ToolProcess | None = None
        self._known: dict[str, tuple[int, ...]] = {}

    def serve(self) -> None:
        """Calls, one after another where they are of a session, else one; raises StreamEnded where its input does."""
        self._warm()
        self._wire.send(frames.HELLO, f"LOCI-WORKER {frames.VERSION} {self._language}".encode())
        session = True
        while session:
            job = self._job()
            session = job["session"]
            self._answer(job, self._run(job))
        # Ended by the runner, in its own time: a sandbox that ends costs the machine more than most calls.
        while self._wire.waiting or job["mode"] != "process":
            self._wait([], None)

    def _warm(self) -> None:
        """Starts Node before there is a job, since it takes long."""
        if self._language == "node":
            self._node = start_node({}, self._memory)

    def _job(self) -> dict[str, Any]:
        """Returns the next job, its files written. What still comes about the last one is nobody's."""
        job: dict[str, Any] = {}
        inputs = files.Inputs()
        while True:
            for kind, body in self._wire.frames():
                if kind == frames.JOB:
                    job = json.loads(body) | {"inputs": False, "problem": ""}
                elif kind in (frames.FILE, frames.DATA) and not job["problem"]:
                    job["inputs"] = True
                    try:
                        inputs.begin(body.decode()) if kind == frames.FILE else inputs.add(body)
                    except (OSError, ValueError) as error:
                        job["problem"] = f"its files could not be written: {error}"
                elif kind == frames.GO:
                    if job["inputs"]:
                        inputs.finish()
                    return job
            self._wait([], None)

    def _run(self, job: dict[str, Any]) -> Outcome:
        """Returns the call; no process of it is left, and what it printed is on its way."""
        if job["problem"]:
            return failure("killed", "SandboxFailed", job["problem"])
        if job["network"]:
            self._relay.listen()
        warm, self._node = self._node, None
        call = Call(job, self._wire, warm, language=self._language, memory=self._memory)
        self._hand_on(call)  # what came together with the job
        while call.outcome is None:
            self._wait([*call.doors(), *self._relay.doors()], call.patience(), call)
            call.look()
        tool.end_all()
        self._relay.stop()
        return call.finish()

    def _answer(self, job: dict[str, Any], outcome: Outcome) -> None:
        limits = job["limits"]
        produced = files.ProducedFiles(limits["files"], limits["file_bytes"])
        for name, file in produced.walk(files.WORK, self._known) if job["mode"] != "process" else ():
            self._wire.send(frames.FILE, name.encode())
            while chunk := file.read(frames.CHUNK):
                self._wire.send(frames.DATA, chunk)
                while self._wire.full:
                    self._wait([], None)
        if job["session"]:
            files.clear()
            self._warm()
        answer = outcome | {"files_dropped": produced.dropped}
        self._wire.send(frames.ANSWER, job["nonce"].encode(), frame(answer)[4:])

    def _wait(self, doors: list[Door], seconds: float | None, call: Call | None = None) -> None:
        """Waits one turn: for the runner, and at the doors."""
        poll, handlers = select.poll(), {door: handler for door, _, handler in doors}
        poll.register(self._wire.source, select.POLLIN)
        if self._wire.waiting:
            # After the source: where both are one socket, this asks for both.
            both = self._wire.source == self._wire.target
            poll.register(self._wire.target, select.POLLOUT | (select.POLLIN if both else 0))
        for door, mask, _ in doors:
            poll.register(door, mask)
        for descriptor, event in poll.poll(None if seconds is None else seconds * 1000):
            if descriptor == self._wire.source:
                self._wire.read()
                self._hand_on(call)
            elif descriptor in handlers:
                handlers[descriptor](event)
        self._wire.write()

    def _hand_on(self, call: Call | None) -> None:
        if call is None:
            return  # `_job` looks for them
        for kind, body in self._wire.frames():
            if kind == frames.INPUT:
                call.input(body)
            elif kind in (frames.BYTES, frames.WINDOW, frames.CLOSE):
                self._relay.take(kind, body)


def main() -> None:
    """Serves whoever is on stdin and stdout. Options: --language python|node, --memory BYTES (for Node's heap)."""
    tool.be_keeper()
    os.environ.update(layer_environment())
    options = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    wire = Wire(0, 1)
    keeper = Keeper(
        wire, Relay(wire), language=options.get("--language", "python"), memory=int(options.get("--memory", "0"))
    )
    try:
        keeper.serve()
    except StreamEnded:
        tool.end_all()
    os._exit(0)
