"""Frames between the tool runner and the launcher: 4 bytes of length (big endian), then a JSON object.

Requests carry `id` and `op`: `probe` {pull_seconds}, `run` {job}, `cancel` {target}. Every request but
`cancel` has one answer with its `id`: `probe` {engine, image, problem}; `run` {result} or {unavailable}.
"""

import json
from typing import Any, BinaryIO

from services.tool_runner.job import MIB, Job, Limits

MAX_FRAME = 64 * MIB
Message = dict[str, Any]


def encode(message: Message) -> bytes:
    """The message as one frame."""
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body


def length(header: bytes) -> int:
    """The size that a header announces; raises ValueError above MAX_FRAME."""
    size = int.from_bytes(header, "big")
    if size > MAX_FRAME:
        raise ValueError(f"a frame of {size} bytes; at most {MAX_FRAME}")
    return size


def read(stream: BinaryIO) -> Message | None:
    """The next message; None at the end of the stream."""
    header = stream.read(4)
    if len(header) < 4:
        return None
    body = stream.read(length(header))
    message: Message = json.loads(body)
    return message


def job_to_fields(job: Job) -> Message:
    """A Job as JSON data."""
    return {
        "source": job.source,
        "function": job.function,
        "arguments": dict(job.arguments),
        "environment": dict(job.environment),
        "limits": vars(job.limits),
    }


def job_from_fields(fields: Message) -> Job:
    """The Job that `job_to_fields` wrote; raises TypeError or KeyError."""
    return Job(**{**fields, "limits": Limits(**fields["limits"])})
