"""How the window is divided between the prompt and the messages, and what the prompt gives up when it must. Pure.

What does not fit is cut in a fixed order: old tool returns, old messages, the middle of the newest message
(context.py), open files, the tails of the longest blocks (`shortened`). What is stored is never cut.
"""

from collections.abc import Mapping, Sequence

from services.agent.window.sizes import BYTES_PER_TOKEN, bytes_of, head, level

# Part of the window that prompt, tools and messages may fill; the rest is for the reply and the estimate's error.
# A window that is fuller is compacted: LETTA V1 API, compaction.
FILL = 0.9
# Tokens in which a newest message, a summary and a marker can be shown, all cut.
LEAST_ROOM = 256
# Part of the window that messages keep when the prompt is large: before they get less, files and blocks are cut.
LEAST_SHARE = 0.1
# How far the estimate is trusted to be wrong in either direction.
_MOST_CALIBRATION = 2.0
# Tokens below which a count is not compared.
_LEAST_COUNTED = 1_000
BLOCK_HINT = "they are stored; what you move out of this block or shorten makes room to see them"


def room_for_messages(window: int, fixed: int, share: int = 1) -> int:
    """Tokens that messages may fill in a window beside `fixed` tokens of prompt and tools, or an nth (`share`) of
    them; LEAST_ROOM at least."""
    return max((int(window * FILL) - fixed) // share, LEAST_ROOM)


def calibrated(window: int, *, estimated: int, reported: int) -> int:
    """The window in estimated tokens, once a provider reported what it counted for an estimate: what is shown is
    measured in estimates, and English takes a third less than they say. Small counts say nothing."""
    if min(estimated, reported) < _LEAST_COUNTED:
        return window
    return int(window * min(max(estimated / reported, 1 / _MOST_CALIBRATION), _MOST_CALIBRATION))


def excess(window: int, fixed: int) -> int:
    """Tokens that the prompt should give up, so that the messages keep their least share; 0 for none."""
    return max(fixed + max(int(window * LEAST_SHARE), LEAST_ROOM) - int(window * FILL), 0)


def shortened(values: Sequence[str], over: int) -> list[str]:
    """The values with `over` tokens less together, or as many as there are: the longest lose their tails first.

    Each cut ends in a marker with the number of characters that it took and how to see them.
    """
    sizes = [bytes_of(value) for value in values]
    most = level(sizes, sum(sizes) - over * BYTES_PER_TOKEN) if over > 0 else max(sizes, default=0)
    return [_without_tail(value, most) for value in values]


def overflow_in_system(sizes: Mapping[str, int], window: int) -> str | None:
    """Why no message at all can be sent, naming the tokens of each part of the prompt; None when one can.

    `sizes` are what is left of each part after everything that may be cut was cut.
    """
    total = sum(sizes.values())
    if total <= window:
        return None
    parts = ", ".join(f"{name} about {size:,}" for name, size in sorted(sizes.items(), key=lambda item: -item[1]))
    return (
        f"The prompt alone needs about {total:,} tokens, and the context window has {window:,}: {parts}. "
        "Shorten the largest of these, or raise the agent's context_window_limit."
    )


def _without_tail(value: str, most: int) -> str:
    if bytes_of(value) <= most:
        return value
    longest = _tail_marker(len(value))
    shown = head(value, max(most - bytes_of(longest), 0))
    return head(shown + _tail_marker(len(value) - len(shown)), most)


def _tail_marker(characters: int) -> str:
    return f"\n[... {characters:,} more characters are not shown: the context window is full; {BLOCK_HINT}]"
