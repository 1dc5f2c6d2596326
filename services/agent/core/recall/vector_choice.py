"""The choice between reading all vectors that count and the index of their model, whichever is sooner. Pure.

Reading a vector of some 500 dimensions and its distance is taken as 1; a visit of the index then costs 50. An index
that serves all tenants visits those of others, too: to find 50 among the one in a hundred that count, it visits 5,000,
and misses some.
"""

from math import isqrt

# Where reading all takes as long as the index does, of vectors of up to 1,024 dimensions.
_MOST_READ, _DIMENSIONS = 10_000, 1_024
_UNIT, _VISIT = 512, 50
# Of those that it visits last, an index misses more.
_SPARE = 2
_LEAST_CANDIDATES, _MOST_CANDIDATES = 200, 1_000


def most_read(dimensions: int) -> int:
    """Returns the number of vectors up to which all are read whatever index there is."""
    return min(_MOST_READ, _MOST_READ * _DIMENSIONS // dimensions)


def by_index(vectors: int, *, indexed: int, limit: int, dimensions: int) -> bool:
    """Returns whether the index finds the `limit` nearest of `vectors` sooner; it holds `indexed`, of all tenants."""
    # Reading n costs n readings; the index visits limit * indexed / n.
    read_instead = isqrt(_SPARE * limit * indexed * _VISIT * _UNIT // dimensions)
    return indexed > 0 and vectors > max(most_read(dimensions), read_instead)


def candidates(limit: int) -> int:
    """Returns what the index keeps at hand (hnsw.ef_search): more find more, and take longer."""
    return max(_LEAST_CANDIDATES, min(_SPARE * limit, _MOST_CANDIDATES))
