"""Starts the launcher: `python -m services.tool_runner.sandboxes.launcher IMAGE WARM`.

The engine's address comes from the Docker SDK's own variables (DOCKER_HOST and its family).
"""

import contextlib
import os
import signal
import sys
import threading
import traceback
from typing import BinaryIO

from services.tool_runner.job import ExitReason, SandboxUnavailable
from services.tool_runner.sandboxes.exchange import died, result_to_fields
from services.tool_runner.sandboxes.launcher.calls import Call, Pool
from services.tool_runner.sandboxes.launcher.engine import Engine
from services.tool_runner.sandboxes.launcher.wire import Message, encode, job_from_fields, read


class Launcher:
    """Answers requests, each in its own thread, until its input ends."""

    def __init__(self, image: str, warm: int, output: BinaryIO) -> None:
        self._image = image
        self._warm = warm
        self._output = output
        self._writing = threading.Lock()
        self._connecting = threading.Lock()
        self._engine: Engine | None = None
        self._pool: Pool | None = None
        self._calls: dict[int, Call] = {}
        self._threads: set[threading.Thread] = set()

    def serve(self, source: BinaryIO) -> None:
        """Read requests to the end of the input, then stop everything."""
        try:
            while request := read(source):
                self._dispatch(request)
        finally:
            self.close()

    def close(self) -> None:
        """Kill what runs, remove what is warm, wait for the threads that remove their containers."""
        for call in list(self._calls.values()):
            call.cancel()
        if self._pool:
            self._pool.close()
        for thread in list(self._threads):
            thread.join(10)

    def _dispatch(self, request: Message) -> None:
        if request["op"] == "cancel":
            if call := self._calls.get(request["target"]):
                threading.Thread(target=call.cancel, daemon=True).start()
            return
        if request["op"] == "run":
            self._calls[request["id"]] = Call()
        thread = threading.Thread(target=self._answer, args=(request,), daemon=True)
        self._threads.add(thread)
        thread.start()

    def _answer(self, request: Message) -> None:
        call = self._calls.get(request["id"], Call())
        try:
            answer = self._probe(request) if request["op"] == "probe" else self._run(request, call)
        except SandboxUnavailable as error:
            answer = {"unavailable": str(error)}
        # A supervisor: whatever went wrong here, the caller must not wait for ever.
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            failure = died(ExitReason.KILLED, f"the sandbox launcher failed ({type(error).__name__})")
            answer = {"result": result_to_fields(failure)}
        with self._writing, contextlib.suppress(BrokenPipeError):
            self._output.write(encode({"id": request["id"], **answer}))
            self._output.flush()
        call.finish()
        self._calls.pop(request["id"], None)
        self._threads.discard(threading.current_thread())

    def _run(self, request: Message, call: Call) -> Message:
        _, pool = self._connected()
        return {"result": result_to_fields(call.run(pool, job_from_fields(request["job"])))}

    def _probe(self, request: Message) -> Message:
        """Whether there is an engine, and the image in it; removes what dead launchers left."""
        try:
            engine, _ = self._connected()
            engine.reap()
            problem = ""
            if not engine.has_image() and request["pull_seconds"]:
                problem = engine.pull(request["pull_seconds"])
            return {"engine": True, "image": engine.has_image(), "problem": problem}
        except SandboxUnavailable as error:
            return {"engine": False, "image": False, "problem": str(error)}

    def _connected(self) -> tuple[Engine, Pool]:
        with self._connecting:
            if self._engine is None or self._pool is None:
                self._engine = Engine(self._image)
                self._pool = Pool(self._engine, self._warm)
            return self._engine, self._pool


def _terminate(*_: object) -> None:
    raise SystemExit(0)


def main() -> None:
    """Serve the process that started this one."""
    image, warm = sys.argv[1], int(sys.argv[2])
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, whose end this one sees
    # The answers get a descriptor of their own; a stray print goes to stderr.
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)
        Launcher(image, warm, output).serve(sys.stdin.buffer)


if __name__ == "__main__":
    main()
