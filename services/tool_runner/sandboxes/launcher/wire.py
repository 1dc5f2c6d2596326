"""Frames between the tool runner and the launcher, in either direction. Pure.

A frame is one byte of kind, four of channel, four of length (big endian), and that many bytes. A channel is one
container, or one question; its number is the runner's, and used once. What a container reads and writes is carried as
it is and never looked into.

    runner    OPEN    JSON: language, memory, processes, cpus, disk, layer ("" for none): start a container
    launcher  OPENED  it runs
    both      DATA    to its stdin; from its stdout
    both      WINDOW  4 bytes: how many more bytes may be sent; at first WINDOW_BYTES
    launcher  ENDED   JSON: problem, out_of_memory, no_layer: it could not be started, or ended by itself
    runner    CLOSE   kill it
    launcher  CLOSED  nothing of it is left; the last of its channel
    runner    ASK     JSON: {op: "probe", pull_seconds} or {op: "add_layer", key, archive}
    launcher  ANSWER  JSON: {engine, image, problem}; {problem}
"""

import json
from enum import IntEnum
from typing import Any, Final

CHUNK_BYTES: Final = 64 * 1024
WINDOW_BYTES: Final = 256 * 1024
HEADER_BYTES: Final = 9
MOST_BYTES: Final = 1024 * 1024  # of one frame
Message = dict[str, Any]


class Frame(IntEnum):
    """Kinds of frames."""

    OPEN = 1
    OPENED = 2
    DATA = 3
    WINDOW = 4
    ENDED = 5
    CLOSE = 6
    CLOSED = 7
    ASK = 8
    ANSWER = 9


def encode(kind: Frame, channel: int, body: bytes = b"") -> bytes:
    """Returns one frame."""
    return bytes((kind,)) + channel.to_bytes(4, "big") + len(body).to_bytes(4, "big") + body


def encode_fields(kind: Frame, channel: int, fields: Message) -> bytes:
    """Returns one frame with JSON in it."""
    return encode(kind, channel, json.dumps(fields).encode())


def encode_window(channel: int, size: int) -> bytes:
    """Leaves to send `size` bytes more."""
    return encode(Frame.WINDOW, channel, size.to_bytes(4, "big"))


def header(data: bytes) -> tuple[Frame, int, int]:
    """Returns kind, channel and length of the body; raises ValueError for what no frame begins with."""
    size = int.from_bytes(data[5:HEADER_BYTES], "big")
    if size > MOST_BYTES:
        raise ValueError(f"a frame of {size} bytes; at most {MOST_BYTES}")
    return Frame(data[0]), int.from_bytes(data[1:5], "big"), size


def read_json(body: bytes) -> Message:
    """Returns what `encode_fields` wrote; raises ValueError."""
    fields: Message = json.loads(body)
    return fields
