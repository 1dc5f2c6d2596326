"""Frames between the runner and a worker, in either direction. Pure; `worker/`, which stands alone, says it again.

A frame is one byte of kind, four of length (big endian), and that many bytes. In this order:

    worker  HELLO       "LOCI-WORKER 2 python" (or node): ready for a job
    runner  JOB         JSON: nonce, mode, source, function, arguments, parameters (their names in the schema's order),
                        schema (what the client said they are, or {}), environment, limits, argv, agent_state, client,
                        network (whether connections may be opened), authority (PEM), session (more may come)
    runner  FILE, DATA  an input file: its name, then its content in chunks; for each
    runner  GO          run it
            ... while it runs, in any order:
    worker  OUTPUT      4 bytes of sequence, 1 of stream (1 stdout, 2 stderr), what was printed; a PROCESS has no limit
    worker  OPEN        4 bytes of connection id: the tool connected to the proxy
    both    BYTES       4 bytes of connection id, data; no data: its end in this direction
    both    WINDOW      4 bytes of connection id, 4 of how many more bytes may be sent; at first WINDOW_BYTES.
                        Connection 0, from the worker: the stdin of a PROCESS
    both    CLOSE       4 bytes of connection id: forget it; each side says it once
    runner  INPUT       to the stdin of a PROCESS; empty: its end
            ... and at the end:
    worker  FILE, DATA  a produced file, as above; for each
    worker  ANSWER      the job's nonce (32 bytes), JSON: reason, result or error, truncated, edits, files_dropped
    runner  JOB         the next one of the session; or the runner ends the worker

A worker whose input ends, ends, and every process of its sandbox with it. Whatever it sends is hostile: frames that are
not due, too long, or of unknown kind end it.
"""

from enum import IntEnum
from typing import Final

VERSION: Final = 2
HELLO_TEXT: Final = "LOCI-WORKER 2 "
CHUNK_BYTES: Final = 64 * 1024
WINDOW_BYTES: Final = 256 * 1024
NONCE_BYTES: Final = 32
MOST_CONNECTIONS: Final = 64
HEADER_BYTES: Final = 5


class Frame(IntEnum):
    """Kinds of frames."""

    HELLO = 1
    JOB = 2
    FILE = 3
    DATA = 4
    GO = 5
    OUTPUT = 6
    OPEN = 7
    BYTES = 8
    WINDOW = 9
    CLOSE = 10
    INPUT = 11
    ANSWER = 12


def encode(kind: Frame, *parts: bytes) -> bytes:
    """Returns one frame."""
    size = sum(map(len, parts))
    return bytes((kind,)) + size.to_bytes(4, "big") + b"".join(parts)
