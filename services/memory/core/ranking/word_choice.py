"""The number of passages that a search by words looks at.

Looking at one takes 2 to 10 microseconds, most of which is fetching it: a search of some milliseconds may look at a few
thousand, whatever the size of the archives.
"""

# Of so many passages, every one that has a word is looked at.
MOST_EXACT = 5_000
# The rarest words of a query say what is meant; more would only take longer.
MOST_WORDS = 24
# For common words alone, of so many of the newest passages those that have them.
MOST_NEWEST = 3_000
_MOST_CANDIDATES = 2_000
_MOST_CHOSEN = 4_000
# A filter leaves many when it leaves one in so many.
_MANY = 20
# A filter takes most candidates away: then more are looked at.
_FILTERED = 3


def most_candidates(limit: int, *, filtered: bool) -> int:
    """Returns where words say which passages to look at."""
    return max(_MOST_CANDIDATES, 4 * limit) * (_FILTERED if filtered else 1)


def most_selected(passages: int) -> int:
    """Returns up to how many passages a filter may leave for all of them to be looked at."""
    return min(_MOST_CHOSEN, passages)


def count_limit(passages: int) -> int:
    """Returns how far to count what a filter leaves: where it is less, all of that can be looked at in the end."""
    return max(2 * _MOST_CHOSEN, passages // _MANY)


def count_before_filter(limit: int, passages: int, selected: int | None) -> int:
    """Returns how many passages should have the words so that a filter that keeps `selected` of all leaves `limit`."""
    return limit if not selected else limit * max(1, passages // selected)
