"""The words of a text, as full-text search sees them, in any language.

Postgres' own parser would split by the database's locale and keep accents. So the text is cut into words
here, and a text search configuration of English stems without stop words only stems them. Scripts written
without spaces become single characters and pairs of neighbours, the usual form for them.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate, islice, zip_longest

# A tsvector holds at most 1 MiB; the worst text of this many bytes stays below it.
_MOST_BYTES = 350_000
# A character gives at most three characters of words, of four bytes each, and three separators.
_SURELY_SHORT = _MOST_BYTES // 15
# Longer runs are keys and encoded data, which nobody looks up by a part.
_LONGEST_WORD = 100
# A query of more words says nothing more about what is meant.
_MOST_QUERY_WORDS = 64

_MARKS = "".join(chr(code) for code in range(0x370, 0x2000) if unicodedata.category(chr(code)).startswith("M"))
_WORD = re.compile(f"[^\\W_]+(?:[{_MARKS}]+[^\\W_]*)*")
_LATIN_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def to_index(text: str) -> list[str]:
    """The words by which a text is found, in order, without case and accents; as many as a tsvector holds."""
    words = _words(_normal(text))
    if len(text) < _SURELY_SHORT:
        return words
    sizes = accumulate(len(word.encode()) + 1 for word in words)
    return [word for word, size in zip(words, sizes, strict=True) if size <= _MOST_BYTES]


def to_find(text: str) -> list[str]:
    """The words of a query, in order, without duplicates: at most 64."""
    normal = _normal(text)
    # Of a run without spaces the pairs tell more than the characters.
    singles = {character for run in _UNSPACED.findall(normal) if len(run) > 1 for character in run}
    words = (word for word in _words(normal) if word not in singles)
    return list(islice(dict.fromkeys(words), _MOST_QUERY_WORDS))


def _normal(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _LATIN_ACCENTS.sub("", decomposed))


def _words(normal: str) -> list[str]:
    words = _WORD.findall(normal)
    if normal.isascii() or not _UNSPACED.search(normal):
        return [word for word in words if len(word) <= _LONGEST_WORD]
    return [part for word in words for part in _parts(word) if len(part) <= _LONGEST_WORD]


def _parts(word: str) -> Iterator[str]:
    """A word itself; of a run without spaces its characters and their pairs; of a mixture, both."""
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
