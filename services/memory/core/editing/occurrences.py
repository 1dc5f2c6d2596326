"""Occurrences of a text in another, and sentences about them."""

# Of a text that occurs more often, nobody needs to know how often.
_MOST = 20


def starts(value: str, old: str) -> list[int]:
    """Returns where `old` begins, also overlapping: each is a place that the model may mean. A few at most."""
    places: list[int] = []
    at = value.find(old)
    while at >= 0 and len(places) <= _MOST:
        places.append(at)
        at = value.find(old, at + 1)
    return places


def count_and_lines(value: str, places: list[int]) -> str:
    """Returns the number and lines of the places, for a sentence."""
    times = f"{len(places)} times" if len(places) <= _MOST else f"more than {_MOST} times"
    lines = ", ".join(str(value.count("\n", 0, start) + 1) for start in places[:_MOST])
    return f"{times} (on lines {lines})"
