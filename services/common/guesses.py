"""How often an address may show a wrong password, key or token. Pure, but for the clock.

An address has a bucket of wrong guesses, which fills evenly. Where it is empty, nothing that comes from there is looked
at, so that a guess learns nothing, but for what was right from there before: who shares an address with somebody who
guesses is not kept out. Each replica of an edge counts for itself.
"""

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

from services.common.errors import ResourceExhausted

K = TypeVar("K")
V = TypeVar("V")

MOST_A_MINUTE = 60
_MINUTE = 60.0
_MOST_KNOWN = 10_000
_IPV6_SUBSCRIBER = 64


class Guesses:
    """Counts wrong ones by address. `shown` is what a caller shows, None for nothing that could be a guess."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # How many guesses were left to an address, and when.
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._right: OrderedDict[int, None] = OrderedDict()

    def check(self, address: str, shown: Hashable | None) -> None:
        """Raises ResourceExhausted (GUESSES_RATE_LIMITED) where an address guessed too often, with `retry-after`."""
        if address not in self._left:
            return
        left = self._guesses_left(address)
        if left < 1 and shown is not None and hash((address, shown)) not in self._right:
            raise _too_many((1 - left) * _MINUTE / MOST_A_MINUTE)

    def wrong(self, address: str, shown: Hashable | None) -> None:
        """Counts a guess; nothing where nothing was shown."""
        if shown is not None:
            _keep(self._left, address, (max(0.0, self._guesses_left(address) - 1), self._clock()))

    def _guesses_left(self, address: str) -> float:
        now = self._clock()
        left, since = self._left.get(address, (float(MOST_A_MINUTE), now))
        return min(float(MOST_A_MINUTE), left + (now - since) * MOST_A_MINUTE / _MINUTE)

    def right(self, address: str, shown: Hashable | None) -> None:
        """Remembers what opened something. Its hash alone is kept, by a key of this process."""
        if shown is not None:
            _keep(self._right, hash((address, shown)), None)


def network_of(host: str) -> str:
    """Returns the address that guesses of a caller count for: of IPv6 the network of one subscriber."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address) and not address.ipv4_mapped:
        return str(ipaddress.IPv6Network((address, _IPV6_SUBSCRIBER), strict=False))
    return host


def _keep(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > _MOST_KNOWN:
        cache.popitem(last=False)


def _too_many(wait: float) -> ResourceExhausted:
    seconds = max(1, math.ceil(wait))
    sentence = f"more than {MOST_A_MINUTE} wrong passwords, keys or tokens came from your address; wait {seconds} s"
    return ResourceExhausted(sentence, reason="GUESSES_RATE_LIMITED", metadata={"retry-after": str(seconds)})
