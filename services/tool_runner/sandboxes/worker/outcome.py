"""The outcome of a call as JSON data: {reason, result} or {reason, error {type, message, traceback}}; with `edits`."""

import enum
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


def encode(value: Any, limit: int, *, or_text: bool) -> Outcome:
    """Returns the value as JSON of at most `limit` bytes; `or_text`: its repr where it is none.

    Raises what a __str__, __repr__ or model_dump of the tool's own does.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=None if or_text else _plain)
    except (ValueError, TypeError, RecursionError) as error:
        if or_text:
            return encode(repr(value), limit, or_text=False)
        why = "too deeply nested" if isinstance(error, RecursionError) else text_of(error)
        message = f"the tool returned a {type(value).__name__} that is not JSON: {why}"
        return failure("bad_result", type(error).__name__, message)
    size = len(text.encode("utf-8", "replace"))
    if size > limit:
        message = f"the result has {size} bytes of JSON; at most {limit} are accepted"
        return failure("output_too_large", "ValueError", message)
    return {"reason": "ok", "result": text}


def _plain(value: Any) -> Any:
    """Returns what JSON lacks, as what it has; anything else as its text, as the reference server gives it."""
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
    # A lonely half of a character, which UTF-8 has no place for, becomes U+FFFD.
    text = json.dumps(data, ensure_ascii=False)
    body = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    return len(body).to_bytes(4, "big") + body


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
