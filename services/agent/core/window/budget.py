"""The division of the window between prompt and messages, and the parts that the prompt gives up when it must. Pure.

What does not fit is cut in a fixed order: old tool returns and old messages (context.py), open files
(`shorten_files`), the middle of the newest message (context.py), the tails of the longest blocks (`shorten`). What
is stored is never cut. The prompt stays the same within a turn: what comes later in it takes nothing from the files.
"""

from collections.abc import Callable, Mapping, Sequence

from services.agent.core.window.sizes import BYTES_PER_TOKEN, bytes_of, head, level

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
    """Returns tokens that messages may fill in a window beside `fixed` tokens of prompt and tools, or an nth (`share`)
    of them; LEAST_ROOM at least.
    """
    return max((int(window * FILL) - fixed) // share, LEAST_ROOM)


def calibrate(window: int, *, estimated: int, reported: int) -> int:
    """Returns the window in estimated tokens, once a provider reported what it counted for an estimate: what is shown
    is measured in estimates, and English takes a third less than they say. Small counts say nothing.
    """
    if min(estimated, reported) < _LEAST_COUNTED:
        return window
    return int(window * min(max(estimated / reported, 1 / _MOST_CALIBRATION), _MOST_CALIBRATION))


def excess(window: int, fixed: int) -> int:
    """Returns tokens that the prompt should give up, so that the messages keep their least share; 0 for none."""
    return max(fixed + max(int(window * LEAST_SHARE), LEAST_ROOM) - int(window * FILL), 0)


def missing_tokens(window: int, fixed: int, needed: int) -> int:
    """Returns tokens that open files should give up, so that messages of so many tokens need not be cut; 0 for none."""
    return max(fixed + needed - int(window * FILL), 0)


def shorten(values: Sequence[str], over: int) -> list[str]:
    """Returns the values with `over` tokens less together, or as many as there are: the longest lose their tails first.

    Each cut ends in a marker with the number of characters that it took and how to see them.
    """
    return _each_at_most(values, over, _without_tail)


def shorten_files(values: Sequence[str], over: int) -> list[str]:
    """Returns as `shorten`, for files in view: whole lines are left out, and the marker names the last one shown."""
    return _each_at_most(values, over, _without_lines)


def _each_at_most(values: Sequence[str], over: int, cut: Callable[[str, int], str]) -> list[str]:
    sizes = [bytes_of(value) for value in values]
    most = level(sizes, sum(sizes) - over * BYTES_PER_TOKEN) if over > 0 else max(sizes, default=0)
    return [value if size <= most else cut(value, most) for value, size in zip(values, sizes, strict=True)]


def overflow_in_system(sizes: Mapping[str, int], window: int) -> str | None:
    """Returns why no message at all can be sent, naming the tokens of each part of the prompt; None when one can.

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


def _without_lines(value: str, most: int) -> str:
    longest = len(_lines_marker(len(value)))
    kept = head(value, max(most - longest, 0)).rpartition("\n")[0]
    number = kept.rpartition("\n")[2].partition(":")[0]
    if not number.isdecimal():  # not even the first of its lines
        first = value.partition("\n")[2].partition(":")[0]
        number = str(int(first) - 1) if first.isdecimal() else "0"
    return head(kept + _lines_marker(int(number)), most)


def _lines_marker(last: int) -> str:
    hint = f"open_files with offset={last} and a small length shows what follows in its answer"
    return f"\n[... the context window is full, and the lines after {last} are not shown; {hint}]"


def _without_tail(value: str, most: int) -> str:
    longest = _tail_marker(len(value))
    kept = head(value, max(most - bytes_of(longest), 0))
    return head(kept + _tail_marker(len(value) - len(kept)), most)


def _tail_marker(characters: int) -> str:
    return f"\n[... {characters:,} more characters are not shown: the context window is full; {BLOCK_HINT}]"
