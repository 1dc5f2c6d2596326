"""The choice of the statement, of three, that finds the nearest vectors soonest.

A statement costs what it reads. Reading a vector of some 500 dimensions and its distance is taken as 1; a visit of the
index then costs 50, and a vector that is fetched by its key 8. Longer vectors make reading dearer, the others hardly.
An index that serves all tenants visits those of others, too: to find 50 among the one in a hundred that count, it
visits 5,000, and misses some.
"""

from enum import Enum
from math import isqrt

# Where reading all takes as long as the index does, of vectors of up to 1,024 dimensions.
MOST_READ = 10_000
_DIMENSIONS = 1_024
# Candidates that the index keeps at hand (hnsw.ef_search): more find more, and take longer.
LEAST_CANDIDATES = 150
MOST_CANDIDATES = 1_000
_UNIT = 512
_VISIT = 50
_FETCH = 8
# Of those that it visits last, an index misses more.
_SPARE = 2


class VectorPlan(Enum):
    """A statement that finds the nearest vectors."""

    # All vectors of the archives.
    READ = "read"
    # The model's index.
    INDEX = "index"
    # The vectors of the passages that a filter leaves.
    FETCH = "fetch"


def choose_plan(passages: int, *, indexed: int, limit: int, dimensions: int, selected: int | None = None) -> VectorPlan:
    """Returns how to find the `limit` nearest of `passages`.

    indexed: how many vectors the model's index holds, of all tenants; 0 without an index. chosen: how many passages a
    filter leaves, None without one; it need not be known beyond `count_limit`.
    """
    if passages <= most_read(dimensions):
        return VectorPlan.READ
    if selected is not None and selected < count_limit(passages, indexed=indexed, limit=limit):
        return VectorPlan.FETCH
    if not indexed or passages <= _read_instead(indexed, limit, dimensions):
        return VectorPlan.READ
    return VectorPlan.INDEX


def most_read(dimensions: int) -> int:
    """Returns up to how many vectors are read whatever index there is."""
    return min(MOST_READ, MOST_READ * _DIMENSIONS // dimensions)


def count_limit(passages: int, *, indexed: int, limit: int) -> int:
    """Returns how many passages, or more, are too many to fetch one by one."""
    if not indexed:
        return passages // _FETCH
    # Fetching n costs n fetches, the index visits limit * indexed / n.
    return min(passages // _FETCH, isqrt(_SPARE * limit * indexed * _VISIT // _FETCH))


def candidates(limit: int) -> int:
    """Returns the value for hnsw.ef_search."""
    return max(LEAST_CANDIDATES, min(_SPARE * limit, MOST_CANDIDATES))


def _read_instead(indexed: int, limit: int, dimensions: int) -> int:
    """Returns where reading n costs what visiting limit * indexed / n does."""
    return isqrt(_SPARE * limit * indexed * _VISIT * _UNIT // dimensions)
