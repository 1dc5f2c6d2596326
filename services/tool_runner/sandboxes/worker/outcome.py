"""The outcome of a call as JSON data: {reason, result} or {reason, error {type, message, traceback}}; with `edits`."""

import importlib
import json
from typing import Any

TOOL_FILE = "<tool>"
MESSAGE_CHARS = 4000
_TRACEBACK_FRAMES = 10
_REASONS = ("raised", "timeout", "memory", "killed", "output_too_large", "bad_result")

Outcome = dict[str, Any]


def failure(reason: str, kind: str, message: str, trace: str = "") -> Outcome:
    """Returns the outcome without a result."""
    return {"reason": reason, "error": {"type": kind, "message": message, "traceback": trace}}


def raised_outcome(error: BaseException, source: str) -> Outcome:
    """Returns the outcome of what the tool's code raised."""
    if isinstance(error, MemoryError):
        return failure("memory", "MemoryError", "the tool used more memory than its limit")
    return failure("raised", type(error).__name__, text_of(error), _own_frames(error, source))


def text_of(error: BaseException) -> str:
    """Returns the exception's message; what it raises in turn is not allowed to matter."""
    try:
        return str(error)[:MESSAGE_CHARS]
    except BaseException as second:  # noqa: BLE001 - the tool's own __str__
        return f"(its message could not be made: {type(second).__name__})"


def _own_frames(error: BaseException, source: str) -> str:
    """Returns the frames in the tool's own source, innermost last."""
    # Only a tool that fails needs them, and they take long to load.
    traceback, linecache = importlib.import_module("traceback"), importlib.import_module("linecache")
    linecache.cache[TOOL_FILE] = (len(source), None, source.splitlines(keepends=True), TOOL_FILE)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == TOOL_FILE]
    return "".join(traceback.format_list(frames[-_TRACEBACK_FRAMES:]))[-MESSAGE_CHARS:]


def frame(data: Any) -> bytes:
    """Returns 4 bytes of length and JSON. Escapes are few: an outcome is at most about twice its contents."""
    text = json.dumps(data, ensure_ascii=False)
    body = (text if text.isascii() else whole_characters(text)).encode()
    return len(body).to_bytes(4, "big") + body


def whole_characters(text: str) -> str:
    """Returns the text with halves of characters joined; a lonely one becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def check(body: bytes) -> Outcome:
    """Returns what a tool's process left, rebuilt from nothing but its expected parts."""
    try:
        left = json.loads(body)
        if left["reason"] == "ok":
            json.loads(left["result"], parse_constant=_refuse)
            edits = [(str(label), str(value)) for label, value in left.get("edits") or ()]
            return {"reason": "ok", "result": left["result"], "edits": edits}
        if left["reason"] not in _REASONS:
            raise ValueError(left["reason"])
        error = left["error"]
        parts = (str(error[key])[:MESSAGE_CHARS] for key in ("type", "message", "traceback"))
        return failure(left["reason"], *parts)
    except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
        return failure("bad_result", "ValueError", "the tool's process left a result that is not JSON")


def _refuse(constant: str) -> None:
    raise ValueError(constant)
