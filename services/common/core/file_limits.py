"""The limits of open files in a context window. Pure."""

# (tokens of the window up to, files in view at once, characters of each); LETTA V1 API, AgentState.
_LIMITS = ((8_000, 3, 5_000), (32_000, 5, 15_000), (128_000, 10, 25_000), (200_000, 10, 40_000))
_LARGEST = (15, 40_000)
_UNKNOWN = (5, 50_000)


def file_limits(window: int, files: int | None = None, characters: int | None = None) -> tuple[int, int]:
    """Files in view at once and characters of each: as chosen, or what is usual for a window of so many tokens, 0 for
    an unknown one.
    """
    usual = next((row[1:] for row in _LIMITS if window <= row[0]), _LARGEST) if window > 0 else _UNKNOWN
    return usual[0] if files is None else files, characters or usual[1]
