"""SQL for the words that a passage is found by: stems as English, those of its own language, its title's, and where it
lies.
"""

from collections.abc import Iterable

from services.common.core.words import query_words

_WORDS = """to_tsvector('memory.words', {words}) || array_to_tsvector({lexemes}::text[])
        || CASE WHEN {language}::text IS NULL THEN ''::tsvector ELSE ts_delete(
            to_tsvector(('pg_catalog.' || {language})::regconfig, {words}),
            tsvector_to_array(to_tsvector('memory.words', {words}))) END
        || {title}"""
# A weight tells the words of a title from those of the text.
_TITLE = "setweight(to_tsvector('memory.words', {title}), 'A')"
_OTHER_TITLE = "ts_filter({words}, '{{d}}') || array_to_tsvector({lexemes}::text[]) || {title}"


def title_words(titles: Iterable[str]) -> str:
    """Returns the words of tags, or of a file's name: at most 64. Each counts as one more of the text."""
    return " ".join(query_words(" ".join(titles)))


def words_vector(words: str, lexemes: str, language: str, title: str) -> str:
    """Returns SQL for a tsvector. language: SQL for what `languages.language_of` returns; title: of `title_words`."""
    return _WORDS.format(words=words, lexemes=lexemes, language=language, title=_TITLE.format(title=title))


def retitled(words: str, lexemes: str, title: str) -> str:
    """Returns SQL for a tsvector with other words of its title."""
    return _OTHER_TITLE.format(words=words, lexemes=lexemes, title=_TITLE.format(title=title))
