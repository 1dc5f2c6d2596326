"""Long texts as a search shows them: what is around the words that were looked for. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from services.agent.core.window.sizes import omission_marker

# Characters to either side of a word, and how often each word is shown at most.
AROUND = 200
OFTEN = 5
_HINT = "search for words of theirs to see them"


def pieces(text: str, most: int) -> Iterator[str]:
    """Yields the text in pieces of at most `most` characters, parted between words where there is a place for that."""
    start = 0
    while len(text) - start > most:
        place = max(text.rfind(space, start + most // 2, start + most) for space in " \n\t")
        end = place if place > start else start + most
        yield text[start:end]
        start = end
    yield text[start:]


def excerpt(text: str, words: Iterable[Sequence[str]], most: int) -> str:
    """Returns a text of at most `most` characters as it is; of a longer one so much of what is around the `words`, in
    the order of the text, with markers for the rest. Its beginning, when none of them is in it.

    `words` are lower-case beginnings of words, in groups; those of the first group are shown first.
    """
    if len(text) <= most:
        return text
    spans: list[tuple[int, int]] = []
    for place in _places(_lower(text), words):
        grown = _merge([*spans, (max(place - AROUND, 0), min(place + AROUND, len(text)))])
        if sum(end - start for start, end in grown) > most:
            break
        spans = grown
    return "".join(_mark_omissions(text, spans or [(0, most)]))


def _lower(text: str) -> str:
    """Returns the text in lower case, each character in its place."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(each.lower()[:1] for each in text)


def _places(text: str, words: Iterable[Sequence[str]]) -> Iterator[int]:
    """Yields where the words begin in the text: of each group first each one's first place, then each one's second."""
    for group in words:
        places = [list(_places_of(text, word)) for word in dict.fromkeys(group) if word]
        for turn in zip_longest(*places):
            yield from (place for place in turn if place is not None)


def _places_of(text: str, word: str) -> Iterator[int]:
    place, times = text.find(word), 0
    while place >= 0 and times < OFTEN:
        if not (place and text[place - 1].isalnum()):
            times += 1
            yield place
        place = text.find(word, place + len(word))


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _mark_omissions(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[str]:
    last = 0
    for start, end in spans:
        if start > last:
            yield omission_marker(start - last, _HINT)
        yield text[start:end]
        last = end
    if last < len(text):
        yield omission_marker(len(text) - last, _HINT)
