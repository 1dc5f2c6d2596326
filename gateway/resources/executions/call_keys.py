"""Keys of calls that are made over REST: a repeated request gets the key of the first, and so attaches to its call.

A client that sends an `Idempotency-Key` is known by it. The SDKs send none, time out after a minute and repeat: what
they repeat is known by what it is, for ten minutes, to the gateway that served it first.
"""

import time
from hashlib import sha256

from loci.agent.v1 import message_service_pb2
from services.common.ids import uuid7

_KEPT_SECONDS = 600.0
_MOST_KEPT = 4_096


class CallKeys:
    """Remembers the keys of what was asked of late."""

    def __init__(self) -> None:
        # By the hash of the request: until when, and the key. Oldest first.
        self._kept: dict[bytes, tuple[float, str]] = {}

    def of(self, retry: message_service_pb2.Retry, path: str) -> str:
        """Returns the key of the call that a request asks for: 64 characters at most."""
        if retry.idempotency_key:
            return sha256(f"{path}\n{retry.idempotency_key}".encode()).hexdigest()
        _, key = self._kept.get(retry.request_hash, (0.0, "")) if retry.is_retry else (0.0, "")
        return key or self._remember(retry.request_hash)

    def _remember(self, request_hash: bytes) -> str:
        now, key = time.monotonic(), str(uuid7())
        self._kept.pop(request_hash, None)
        self._kept[request_hash] = (now + _KEPT_SECONDS, key)
        for oldest, (until, _) in list(self._kept.items()):
            if until > now and len(self._kept) <= _MOST_KEPT:
                break
            del self._kept[oldest]
        return key
