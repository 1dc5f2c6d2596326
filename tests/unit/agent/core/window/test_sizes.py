"""Sizes, cuts, and what a prompt gives up."""

from collections.abc import Callable

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.core.window.budget import (
    BLOCK_HINT,
    LEAST_ROOM,
    calibrate,
    excess,
    missing_tokens,
    overflow_in_system,
    shorten,
    shorten_files,
)
from services.agent.core.window.sizes import bytes_of, clamp_return, clip, clip_arguments, clip_chars, level

texts = st.text(st.characters(), max_size=400)


@given(texts, st.integers(0, 900))
def test_a_clipped_text_has_its_size_and_its_ends(text: str, most: int) -> None:
    cut = clip(text, most)
    assert bytes_of(cut) <= most or cut == text == ""
    if bytes_of(text) <= most:
        assert cut == text
    elif most > 200:
        assert cut[:10] == text[:10]
        assert cut[-10:] == text[-10:]
        assert "conversation_search" in cut


@given(texts, st.integers(1, 900))
def test_characters_are_clipped_alike(text: str, most: int) -> None:
    assert len(clip_chars(text, most)) <= most
    assert clip_chars(text, len(text)) == clip_chars(text, None) == clip_chars(text, 0) == text


@given(st.dictionaries(st.text(max_size=9), st.one_of(st.text(max_size=300), st.lists(st.integers(), max_size=90))))
def test_cut_arguments_are_an_object(values: dict[str, object]) -> None:
    try:
        arguments = orjson.dumps(values).decode()
    except TypeError:
        # Numbers beyond 64 bits.
        return
    for most in (2, 50, 200, 1_000):
        cut = clip_arguments(arguments, most)
        assert len(cut.encode()) <= most
        assert isinstance(orjson.loads(cut), dict)


@pytest.mark.parametrize(
    "arguments", ["not JSON" * 99, "[" * 300 + "]" * 300, '{"a":' * 300 + "1" + "}" * 300, '"x"' * 99]
)
def test_arguments_that_cannot_be_cut_are_left_out(arguments: str) -> None:
    assert clip_arguments(arguments, 100) == "{}"


@pytest.mark.parametrize(("window", "most"), [(1_000, 5_000), (6_250, 5_000), (100_000, 80_000)])
def test_a_return_is_clamped_to_its_part_of_the_window(window: int, most: int) -> None:
    assert clamp_return("x" * most, window) == "x" * most
    cut = clamp_return("x" * (most + 1), window)
    # The number in the marker is as long as it could be, or shorter.
    assert most - 9 <= len(cut) <= most
    assert "ask the tool for less at a time" in cut


@given(st.lists(st.integers(0, 99), max_size=9), st.integers(0, 400))
def test_the_level_is_the_highest_that_fits(sizes: list[int], room: int) -> None:
    most = level(sizes, room)
    assert sum(min(size, most) for size in sizes) <= room
    assert most >= max(sizes, default=0) or sum(min(size, most + 1) for size in sizes) > room


def test_the_longest_blocks_lose_their_tails() -> None:
    values = ["a" * 100, "b" * 900, "c" * 1_500]
    short = shorten(values, 500)
    assert short[:1] == values[:1]
    assert short[1].startswith("bbb")
    assert len(short[1]) == len(short[2]) == 450
    assert short[2].endswith(f"more characters are not shown: the context window is full; {BLOCK_HINT}]")
    assert shorten(values, 0) == values
    assert shorten([], 9) == []


@given(st.lists(texts, max_size=5), st.integers(0, 400), st.sampled_from((shorten, shorten_files)))
def test_as_much_is_saved_as_there_is(values: list[str], over: int, cut: Callable[..., list[str]]) -> None:
    sizes, short = sum(map(bytes_of, values)), cut(values, over)
    assert sum(map(bytes_of, short)) <= max(sizes - 3 * over, 0)


def in_view(first: int, last: int, size: int) -> str:
    """A file as the memory service shows it."""
    lines = [f"{number}: {'x' * size}" for number in range(first, last + 1)]
    return "\n".join([f"[Lines {first} to {last} of 9000 are in view.]", *lines])


@pytest.mark.parametrize("over", [100, 300, 500])
def test_files_lose_whole_lines_and_say_where_to_go_on(over: int) -> None:
    whole = in_view(401, 440, 50)
    (short,) = shorten_files([whole], over)
    *shown, marker = short.split("\n")
    assert shown == whole.split("\n")[: len(shown)]
    assert (
        f"the lines after {400 + len(shown) - 1} are not shown; open_files with offset={400 + len(shown) - 1} "
        in marker
    )


def test_a_file_of_which_not_a_line_fits_says_where_it_began() -> None:
    (short,) = shorten_files([in_view(401, 401, 900)], 200)
    assert "open_files with offset=400 " in short
    assert "xx" not in short


def test_files_give_up_what_the_newest_messages_need() -> None:
    assert missing_tokens(10_000, 5_000, 4_000) == 0
    assert missing_tokens(10_000, 5_000, 4_500) == 500


def test_the_prompt_gives_up_what_messages_need() -> None:
    assert excess(10_000, 8_000) == 0
    assert excess(10_000, 8_500) == 500
    assert excess(1_000, 900 - LEAST_ROOM) == 0


def test_only_a_prompt_larger_than_the_window_is_hopeless() -> None:
    assert overflow_in_system({"system instructions": 600, "tool schemas": 400}, 1_000) is None
    sentence = overflow_in_system({"system instructions": 1_600, "tool schemas": 12_400}, 8_000)
    assert sentence is not None
    assert "about 14,000 tokens, and the context window has 8,000" in sentence
    assert "tool schemas about 12,400, system instructions about 1,600" in sentence


@pytest.mark.parametrize(
    ("estimated", "reported", "window"),
    [
        (0, 9_000, 1_000),
        (9_000, 0, 1_000),
        (999, 500, 1_000),
        (4_000, 3_000, 1_333),
        (3_000, 4_000, 750),
        (9_000, 1_000, 2_000),
    ],
)
def test_the_estimate_is_calibrated(estimated: int, reported: int, window: int) -> None:
    assert calibrate(1_000, estimated=estimated, reported=reported) == window
