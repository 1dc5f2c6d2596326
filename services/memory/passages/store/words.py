"""SQL for the words that a passage is found by: stems as English, those of its own language, and where it lies."""

_WORDS = """to_tsvector('memory.words', {words}) || array_to_tsvector({lexemes}::text[])
        || CASE WHEN {language}::text IS NULL THEN ''::tsvector ELSE ts_delete(
            to_tsvector(('pg_catalog.' || {language})::regconfig, {words}),
            tsvector_to_array(to_tsvector('memory.words', {words}))) END"""


def words_vector(words: str, lexemes: str, language: str) -> str:
    """Returns SQL for a tsvector. language: SQL for what `languages.language_of` returns."""
    return _WORDS.format(words=words, lexemes=lexemes, language=language)
