"""The words of a text, as full-text search sees them, in any language.

Postgres' own parser would split by the database's locale and keep accents. So the text is cut into words
here, and the configuration `memory.words` (English stems, no stop words) only stems them. Scripts written
without spaces become single characters and pairs of neighbours, the usual form for them.
"""

import re
import unicodedata
from itertools import pairwise

# A tsvector holds at most 1 MiB; the worst text of this many bytes stays below it.
_MOST_BYTES = 350_000
# Longer runs are keys and encoded data, which nobody looks up by a part.
_LONGEST_WORD = 100
# A query of more words says nothing more about what is meant.
_MOST_QUERY_WORDS = 64

_MARKS = "".join(chr(code) for code in range(0x370, 0x2000) if unicodedata.category(chr(code)).startswith("M"))
_WORD = re.compile(f"[^\\W_][^\\W_{_MARKS}]*(?:[{_MARKS}]+[^\\W_]*)*")
_LATIN_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)


def to_index(text: str) -> list[str]:
    """The words by which a text is found, in order, without case and accents; as many as a tsvector holds."""
    words: list[str] = []
    size = 0
    for word in _split(text):
        size += len(word.encode()) + 1
        if size > _MOST_BYTES:
            break
        words.append(word)
    return words


def to_find(text: str) -> list[str]:
    """The words of a query, in order, without duplicates: at most 64."""
    singles = {word for run in _runs(text) for word in run if len(run) > 1}
    words = [word for word in _split(text) if word not in singles]
    return list(dict.fromkeys(words))[:_MOST_QUERY_WORDS]


def _normal(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _LATIN_ACCENTS.sub("", decomposed))


def _runs(text: str) -> list[str]:
    return _UNSPACED.findall(_normal(text))


def _split(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(_normal(text)):
        if len(word) > _LONGEST_WORD and not _UNSPACED.search(word):
            continue
        words.extend(_parts(word))
    return words


def _parts(word: str) -> list[str]:
    """A word itself; of a run without spaces its characters and their pairs; of a mixture, both."""
    parts: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > at:
            parts.append(word[at : run.start()])
        characters = run.group()
        parts.extend(characters)
        parts.extend(first + second for first, second in pairwise(characters))
        at = run.end()
    if at < len(word):
        parts.append(word[at:])
    return parts
