"""Ids: UUID version 7 (RFC 9562) inside, `<prefix>-<uuid>` outside."""

import os
import threading
import time
from collections.abc import Iterable
from uuid import UUID

from services.common.errors import InvalidArgument

_COUNTER_BITS = 42
_lock = threading.Lock()
_last_ms = 0
_counter = 0


def uuid7() -> UUID:
    """Returns a new UUIDv7; each is greater than the one before in this process, also when the clock goes back.

    RFC 9562 section 6.2, method 1: 48 bits of milliseconds, a 42-bit counter that starts at random with its
    top bit clear, 32 random bits.
    """
    global _last_ms, _counter
    random = int.from_bytes(os.urandom(10), "big")
    tail = random & 0xFFFFFFFF
    now_ms = time.time_ns() // 1_000_000
    with _lock:
        if now_ms > _last_ms:
            _last_ms = now_ms
            _counter = (random >> 32) & ((1 << (_COUNTER_BITS - 1)) - 1)
        else:
            _counter += 1
            if _counter >> _COUNTER_BITS:
                _last_ms += 1
                _counter = 0
        ms, counter = _last_ms, _counter
    high, low = counter >> 30, counter & 0x3FFFFFFF
    return UUID(int=ms << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low << 32 | tail)


def to_public(prefix: str, value: UUID) -> str:
    """Returns "block-<uuid>", lower case, for `to_public("block", uuid)`."""
    return f"{prefix}-{value}"


def from_public(prefix: str, text: str) -> UUID:
    """Returns the UUID (of any version) in "<prefix>-<uuid>".

    Raises InvalidArgument with reason INVALID_ID.
    """
    head = f"{prefix}-"
    body = text[len(head) :]
    if text.startswith(head) and len(body) == 36:
        try:
            value = UUID(body)
        except ValueError:
            pass
        else:
            if str(value) == body.lower():
                return value
    raise InvalidArgument(
        f"{text[:80]!r} is not a valid id; expected {head}<uuid>, "
        f"for example {head}123e4567-e89b-42d3-8456-426614174000",
        reason="INVALID_ID",
        metadata={"prefix": prefix},
    )


def optional_id(prefix: str, text: str) -> UUID | None:
    """Returns the UUID in an id; None for an empty text. Raises as `from_public`."""
    return from_public(prefix, text) if text else None


def ids_in(prefix: str, texts: Iterable[str]) -> tuple[UUID, ...]:
    """Returns the UUIDs of a list. Raises as `from_public`."""
    return tuple(from_public(prefix, text) for text in texts)
