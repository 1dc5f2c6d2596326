"""How often a key may ask: a bucket for each, which fills evenly and is full after a minute. Pure, but for the clock.

Each replica of the gateway counts for itself.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.common.errors import ResourceExhausted

_MOST_BUCKETS = 10_000
_MINUTE = 60.0


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimits:
    """Counts requests by key. default: requests a minute of a key that has no limit of its own; None: no limit."""

    def __init__(self, default: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._default = default
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str, own: int | None) -> Mapping[str, str]:
        """Counts one request; the headers that tell the client where it stands, none without a limit.

        Raises ResourceExhausted (REQUESTS_RATE_LIMITED), with the same headers and `retry-after` as metadata.
        """
        limit = self._default if own is None else own
        if limit is None:
            return {}
        bucket, now = self._bucket(key, limit), self._clock()
        bucket.tokens = min(float(limit), bucket.tokens + (now - bucket.at) * limit / _MINUTE)
        bucket.at = now
        refused = bucket.tokens < 1
        if not refused:
            bucket.tokens -= 1
        headers = {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": str(math.floor(bucket.tokens)),
            "x-ratelimit-reset": str(math.ceil((limit - bucket.tokens) * _MINUTE / limit)),
        }
        if refused:
            wait = max(1, math.ceil((1 - bucket.tokens) * _MINUTE / limit))
            sentence = f"more than {limit} requests in a minute; try again in {wait} s"
            metadata = {**headers, "retry-after": str(wait)}
            raise ResourceExhausted(sentence, reason="REQUESTS_RATE_LIMITED", metadata=metadata)
        return headers

    def _bucket(self, key: str, limit: int) -> _Bucket:
        bucket = self._buckets.pop(key, None) or _Bucket(float(limit), self._clock())
        # The longest unused goes, which is full again as a rule.
        while len(self._buckets) >= _MOST_BUCKETS:
            self._buckets.popitem(last=False)
        self._buckets[key] = bucket
        return bucket
