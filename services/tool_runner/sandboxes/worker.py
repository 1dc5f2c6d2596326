"""The program inside every sandbox: serves one call, then ends. Standard library only, Python 3.11 or newer.

It is two processes. The *keeper* (process 1 of the sandbox) reads the job on stdin, captures, limits and at
last answers on stdout; the *tool* process runs the user's source and never holds the answer channel. Nothing
printed, and nothing written to any descriptor of the tool, can pass for an answer: answers begin with a nonce
that only the keeper has, and the keeper is not dumpable, so the tool cannot read it from /proc.

Wire, in order:
  keeper: `LOCI-WORKER 1\\n`, once it is ready to take a job
  runner: 4 bytes of length (big endian), JSON job
  keeper: the job's nonce (32 bytes), 4 bytes of length, JSON answer
When stdin closes first (the runner is gone), the keeper ends, and every process of the sandbox with it.

Job:    nonce, source, function, arguments {name: value}, environment {name: value}, limits {...}
Limits: seconds; capture_bytes (kept of each stream); flood_bytes (of both, before the tool is stopped);
        result_bytes; file_bytes (of one file); memory_bytes and processes (0: something outside counts them)
Answer: reason (ok, raised, timeout, memory, killed, output_too_large, bad_result), result (JSON text, if ok),
        error {type, message, traceback} (if not), stdout, stderr, truncated
"""

import contextlib
import ctypes
import enum
import importlib
import inspect
import json
import linecache
import os
import resource
import selectors
import signal
import sys
import time
import traceback
import types
from typing import Any

HELLO = b"LOCI-WORKER 1\n"
NONCE_BYTES = 32
_FILE = "<tool>"
_TRACEBACK_FRAMES, _MESSAGE_CHARS = 10, 4000
_MEMORY_LOOK_SECONDS = 0.05
_PR_SET_DUMPABLE = 4
_LIBC = ctypes.CDLL(None)


# The tool process: runs the source, leaves its outcome on a pipe.


def run_tool(job: dict[str, Any]) -> dict[str, Any]:
    """Load the source, call the function, and say how it ended; never raises."""
    linecache.cache[_FILE] = (len(job["source"]), None, job["source"].splitlines(keepends=True), _FILE)
    try:
        value = _call(job)
    except MemoryError:
        return _failure("memory", "MemoryError", "the tool used more memory than its limit")
    # Whatever a tool raises, SystemExit included, is its outcome.
    except BaseException as error:  # noqa: BLE001
        return _failure("raised", type(error).__name__, _text(error), _short_traceback(error))
    return _encode(value, job["limits"]["result_bytes"])


def _call(job: dict[str, Any]) -> Any:
    module = types.ModuleType("tool")
    sys.modules["tool"] = module
    exec(compile(job["source"], _FILE, "exec"), module.__dict__)
    function = getattr(module, job["function"])
    # An argument that may be left out and has no default is None (Optional[T], agent_state).
    missing = {
        name: None
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty
    }
    value = function(**(missing | job["arguments"]))
    # asyncio is imported by who needs it: it would double the start of every worker.
    return importlib.import_module("asyncio").run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value


def _encode(value: Any, limit: int) -> dict[str, Any]:
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)
    except (ValueError, TypeError, RecursionError) as error:
        why = "too deeply nested" if isinstance(error, RecursionError) else _text(error)
        message = f"the tool returned a {type(value).__name__} that is not JSON: {why}"
        return _failure("bad_result", type(error).__name__, message)
    # Whatever a __str__ or a model_dump of the tool's own raises is the tool's outcome, too.
    except BaseException as error:  # noqa: BLE001
        return _failure("raised", type(error).__name__, _text(error), _short_traceback(error))
    size = len(text.encode("utf-8", "replace"))
    if size > limit:
        message = f"the result has {size} bytes of JSON; at most {limit} are accepted"
        return _failure("output_too_large", "ValueError", message)
    return {"reason": "ok", "result": text}


def _plain(value: Any) -> Any:
    """What JSON lacks, as what it has; anything else as its text, as the reference server gives it."""
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return importlib.import_module("dataclasses").asdict(value)
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        return dump(mode="json")
    if callable(iso := getattr(value, "isoformat", None)) and not isinstance(value, type):
        return iso()
    match value:
        case set() | frozenset():
            return list(value)
        case enum.Enum():
            return value.value
        case bytes():
            return value.decode("utf-8", "replace")
    return str(value)


def _failure(reason: str, kind: str, message: str, trace: str = "") -> dict[str, Any]:
    return {"reason": reason, "error": {"type": kind, "message": message, "traceback": trace}}


def _text(error: BaseException) -> str:
    """The exception's message; what it raises in turn is not allowed to matter."""
    try:
        return str(error)[:_MESSAGE_CHARS]
    except BaseException as second:  # noqa: BLE001 - the tool's own __str__
        return f"(its message could not be made: {type(second).__name__})"


def _short_traceback(error: BaseException) -> str:
    """The frames in the tool's own source, innermost last."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    return "".join(traceback.format_list(frames[-_TRACEBACK_FRAMES:]))[-_MESSAGE_CHARS:]


def _become_tool(job: dict[str, Any], output: int, errors: int, outcome: int) -> None:
    """In the forked child: give up the keeper's descriptors, take the limits, run, report, end."""
    me = os.getpid()
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for target, source in ((0, null), (1, output), (2, errors)):
        os.dup2(source, target)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor != outcome:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    _LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    _limit_tool(job["limits"])
    os.environ.update(job["environment"])
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)  # type: ignore[union-attr]
    answer = run_tool(job)
    if os.getpid() != me:  # a copy that the tool forked came back through here
        os._exit(0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    with open(outcome, "wb") as pipe:
        pipe.write(_framed(answer))
    os._exit(0)


def _limit_tool(limits: dict[str, Any]) -> None:
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, 256),
    ]
    if limits["memory_bytes"]:
        wanted.append((resource.RLIMIT_AS, limits["memory_bytes"]))
    if limits["processes"]:
        wanted.append((resource.RLIMIT_NPROC, limits["processes"]))
    for what, value in wanted:
        resource.setrlimit(what, (value, value))
    # Of the two, the kernel is to choose the tool when memory runs out.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


# The keeper.


class Keeper:
    """Watches one tool process; `answer` is set once."""

    def __init__(self, job: dict[str, Any], control: int) -> None:
        self._limits = job["limits"]
        self._deadline = time.monotonic() + self._limits["seconds"]
        self._captured: dict[str, bytearray] = {
            "stdout": bytearray(),
            "stderr": bytearray(),
            "outcome": bytearray(),
        }
        self._printed = 0
        self._answer: dict[str, Any] | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, "control")
        self._child = self._start(job)

    def _start(self, job: dict[str, Any]) -> int:
        pipes = {name: os.pipe() for name in self._captured}
        child = os.fork()
        if child == 0:
            _become_tool(job, *(pipes[name][1] for name in ("stdout", "stderr", "outcome")))
        for name, (read, write) in pipes.items():
            os.close(write)
            os.set_blocking(read, False)
            self._selector.register(read, selectors.EVENT_READ, name)
        return child

    def watch(self) -> dict[str, Any]:
        """Wait for the end of the tool or of its limits; no process but this one is left then."""
        while self._answer is None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                self._answer = _failure("timeout", "TimeoutError", f"no result after {self._limits['seconds']:g} s")
                break
            self._read(min(left, _MEMORY_LOOK_SECONDS))
            self._look_at_memory()
            self._look_at_child()
        _kill_all(self._child)
        self._read(0)
        return self._finish(self._answer or {})

    def _read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if key.data == "control":
                os._exit(0)  # readable without a second job on its way: the runner has closed it
            chunk = os.read(key.fd, 1 << 16)
            if not chunk:
                self._selector.unregister(key.fd)
            self._take(key.data, chunk)

    def _take(self, name: str, chunk: bytes) -> None:
        kept = self._captured[name]
        if name == "outcome":
            kept += chunk
            self._look_at_outcome(kept)
            return
        kept += chunk[: max(0, self._limits["capture_bytes"] - len(kept))]
        self._printed += len(chunk)
        if self._printed > self._limits["flood_bytes"] and self._answer is None:
            message = f"the tool printed more than {self._limits['flood_bytes']} bytes"
            self._answer = _failure("output_too_large", "ValueError", message)

    def _look_at_outcome(self, kept: bytearray) -> None:
        if self._answer is not None or len(kept) < 4:
            return
        size = int.from_bytes(kept[:4], "big")
        # Twice, for JSON text in JSON; only a tool that writes here by itself is over it.
        if size > 2 * self._limits["result_bytes"] + 65536:
            self._answer = _failure("output_too_large", "ValueError", "the result is over its limit")
        elif len(kept) >= 4 + size:
            self._answer = _checked(bytes(kept[4 : 4 + size]))

    def _look_at_memory(self) -> None:
        limit = self._limits["memory_bytes"]
        if limit and self._answer is None and _resident_bytes() > limit:
            self._answer = _failure("memory", "MemoryError", "the tool's processes used more memory than its limit")

    def _look_at_child(self) -> None:
        pid, status = os.waitpid(self._child, os.WNOHANG)
        if not pid:
            return
        self._read(0)
        if self._answer is None and _kernel_killed_for_memory():
            self._answer = _failure("memory", "MemoryError", "the tool used more memory than its limit")
        if self._answer is None:
            code = os.waitstatus_to_exitcode(status)
            how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            self._answer = _failure("killed", "ProcessEnded", f"the tool's process ended {how} without a result")

    def _finish(self, answer: dict[str, Any]) -> dict[str, Any]:
        for name in ("stdout", "stderr"):
            answer[name] = self._captured[name].decode("utf-8", "replace")
        answer["truncated"] = self._printed > sum(len(self._captured[name]) for name in ("stdout", "stderr"))
        return answer


def _checked(frame: bytes) -> dict[str, Any]:
    """What the tool process left, rebuilt from nothing but its expected parts."""
    try:
        outcome = json.loads(frame)
        if outcome["reason"] == "ok":
            json.loads(outcome["result"], parse_constant=_refuse)
            return {"reason": "ok", "result": outcome["result"]}
        error = outcome["error"]
        parts = (str(error[key])[:_MESSAGE_CHARS] for key in ("type", "message", "traceback"))
        return _failure(str(outcome["reason"]), *parts)
    except (ValueError, TypeError, KeyError, RecursionError):
        return _failure("bad_result", "ValueError", "the tool's process left a result that is not JSON")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _resident_bytes() -> int:
    """Memory of every process of the sandbox but the keeper."""
    total = 0
    for pid in os.listdir("/proc"):
        if pid.isdecimal() and int(pid) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:
                total += int(file.read().split()[1])
    return total * resource.getpagesize()


def _kernel_killed_for_memory() -> bool:
    """The sandbox's own control group knows, where it is shown inside: its v2 file, then its v1 file."""
    for name in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError), open(name) as file:
            return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in file)
    return False


def _kill_all(child: int) -> None:
    """As process 1, everything in the sandbox; else (in a test, outside one) the tool's session."""
    try:
        os.kill(-1, signal.SIGKILL) if os.getpid() == 1 else os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _framed(answer: dict[str, Any]) -> bytes:
    """Escapes are kept few, so that an answer is at most about twice as long as what it holds."""
    body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    return len(body).to_bytes(4, "big") + body


def main() -> None:
    """Say hello, take one job, answer it."""
    _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    # Process 1 is deaf to every signal it has no handler for; Python gave it one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.write(1, HELLO)
    source = sys.stdin.buffer
    header = source.read(4)
    if len(header) < 4:
        return
    job = json.loads(source.read(int.from_bytes(header, "big")))
    answer = Keeper(job, control=0).watch()
    sys.stdout.buffer.write(job["nonce"].encode() + _framed(answer))
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
