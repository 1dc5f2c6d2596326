"""Queries in tsquery's notation, and what BM25 in SQL needs."""

from services.common.core.ranking import all_of, any_of, frequency_thresholds, quote_lexeme


def test_queries_quote_what_tsquery_would_read() -> None:
    assert [quote_lexeme(lexeme) for lexeme in ("a", "o'b", "c\\d")] == ["'a'", "'o''b'", "'c\\\\d'"]
    assert (any_of(["a", "b"]), all_of(["a", "b"])) == ("('a' | 'b')", "'a' & 'b'")
    assert (any_of([]), all_of([])) == ("", "")


def test_thresholds_part_the_ranks_of_one_two_three_occurrences() -> None:
    """The ranks are those that Postgres 18 gives for `repeat('cat ', n)` with all weights 1."""
    thresholds = frequency_thresholds()
    for occurrences, rank in ((1, 0.60792708), (2, 0.75990885), (3, 0.82745635), (20, 0.97035092)):
        assert sum(threshold <= rank for threshold in thresholds) + 1 == occurrences
    assert thresholds == sorted(thresholds)
    assert len(thresholds) == 31
