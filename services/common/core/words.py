"""The words of a text, as full-text search sees them, in any language.

Postgres' own parser would split by the database's locale and keep accents. So the text is cut into words
here, and a text search configuration of English stems without stop words only stems them. Scripts written
without spaces become single characters and pairs of neighbours, the usual form for them.
"""

import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest

# A tsvector's words and positions fill at most 1 MiB; some of it is kept for what the caller adds.
_MOST_BYTES = 1_000_000
# Before and after a word: alignment and the number of its positions. A position: two bytes, of at most 255.
_WORD_BYTES = 3
_POSITION_BYTES = 2
_MOST_POSITIONS = 255
# A character gives at most three characters of words, of four bytes each, in three words with a position.
_SURELY_SHORT = _MOST_BYTES // (3 * (4 + _WORD_BYTES + _POSITION_BYTES))
# Other threads run when this one waits, and seldom else: after so many characters or words, a millisecond or two, it
# does. Without that an event loop would be 15 ms late at every step, and 150 ms beside two such threads.
_PIECE = 4_096
_MOST_WORDS_AT_ONCE = 1_024
_PAUSE_SECONDS = 0.0005
# Longer runs are keys and encoded data, which nobody looks up by their end.
_LONGEST_WORD = 100
# A query of more words says nothing more about what is meant.
_MOST_QUERY_WORDS = 64

_MARKS = "".join(chr(code) for code in range(0x370, 0x2000) if unicodedata.category(chr(code)).startswith("M"))
_WORD = re.compile(f"[^\\W_]+(?:[{_MARKS}]+[^\\W_]*)*")
_SPACE = re.compile(r"\s")
_LATIN_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def index_words_of_all(texts: Iterable[str]) -> list[list[str]]:
    """Returns the words of each text, see `index_words`. For a thread: it pauses to let others run."""
    indexed = []
    done = 0
    for text in texts:
        indexed.append(index_words(text))
        done += len(text)
        if done > _PIECE:
            time.sleep(_PAUSE_SECONDS)
            done = 0
    return indexed


def index_words(text: str) -> list[str]:
    """Returns the words by which a text is found, in order, without case and accents; as many as a tsvector holds.

    Of a long text this takes a while, with pauses in which other threads run.
    """
    if len(text) <= _PIECE:
        return _words(_normal(text))
    indexed = _with_pauses(word for piece in _pieces(text) for word in _words(_normal(piece)))
    return list(indexed if len(text) < _SURELY_SHORT else _as_many_as_fit(indexed))


def query_words(text: str) -> list[str]:
    """Returns the words of a query, in order, without duplicates: at most 64."""
    normal = _normal(text)
    # Of a run without spaces the pairs tell more than the characters.
    singles = {character for run in _UNSPACED.findall(normal) if len(run) > 1 for character in run}
    words = (word for word in _words(normal) if word not in singles)
    return list(islice(dict.fromkeys(words), _MOST_QUERY_WORDS))


def _pieces(text: str) -> Iterator[str]:
    """Yields a text cut between words; a run of words without spaces that is longer than a piece is cut anywhere."""
    start = 0
    while len(text) - start > _PIECE:
        space = _SPACE.search(text, start + _PIECE // 2, start + _PIECE)
        end = space.start() if space else start + _PIECE
        yield text[start:end]
        start = end
    yield text[start:]


def _with_pauses(words: Iterable[str]) -> Iterator[str]:
    for number, word in enumerate(words, 1):
        if number % _MOST_WORDS_AT_ONCE == 0:
            time.sleep(_PAUSE_SECONDS)
        yield word


def _as_many_as_fit(words: Iterable[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    room = _MOST_BYTES
    for word in words:
        seen[word] += 1
        if seen[word] == 1:
            room -= len(word.encode()) + _WORD_BYTES
        if seen[word] <= _MOST_POSITIONS:
            room -= _POSITION_BYTES
        if room < 0:
            return
        yield word


def _normal(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _LATIN_ACCENTS.sub("", decomposed))


def _words(normal: str) -> list[str]:
    words = _WORD.findall(normal)
    if normal.isascii() or not _UNSPACED.search(normal):
        return [word[:_LONGEST_WORD] for word in words]
    return [part[:_LONGEST_WORD] for word in words for part in _parts(word)]


def _parts(word: str) -> Iterator[str]:
    """Yields a word itself; of a run without spaces its characters and their pairs; of a mixture, both."""
    at = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > at:
            yield word[at : run.start()]
        for character, following in zip_longest(run.group(), run.group()[1:], fillvalue=""):
            yield character
            if following:
                yield character + following
        at = run.end()
    if at < len(word):
        yield word[at:]
