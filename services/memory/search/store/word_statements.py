"""SQL that ranks passages by their words: where candidates come from, and how they are scored.

$1 is the tenant, $2 the archives (null: all), $3 what tells apart how often a word stands in a passage
(ranking.frequency_thresholds), $4 how many passages there are, $5 the average number of their words, $6 the weights of
the query's words (null: as many passages as are found), $7 these words as queries, $8 how many results are wanted.
"""

from services.common.core.ranking import BM25_B, BM25_K1
from services.memory.core.ranking.search import Part
from services.memory.passages.model import PassageFilter
from services.memory.search.store.filters import COLUMNS, newest, own_condition, within
from services.memory.sql.statements import Values

# Without a plan for these very words and this tenant, or with a scan of all tenants' passages, a search could take
# seconds. The planner cannot know how many passages an archive's lexeme has.
SETTINGS = "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_seqscan = off"

# Nothing of the tenant or the archives is said here, or the planner would read their keys: a lexeme of theirs is in the
# query.
_MATCHING = "(SELECT {columns} FROM memory.passages c WHERE c.words @@ {query}::text::tsquery LIMIT {most})"
_OF_NEWEST = "(SELECT {columns} FROM ({newest}) AS c WHERE c.words @@ {query}::text::tsquery)"
_OF_CHOSEN = """(SELECT {columns} FROM ({chosen}) AS chosen CROSS JOIN LATERAL (
        SELECT * FROM memory.passages p
        WHERE p.organization_id = $1 AND p.archive_id = chosen.archive_id AND p.id = chosen.passage_id OFFSET 0
    ) AS c WHERE c.words @@ {query}::text::tsquery)"""

# How often a word stands in a passage comes out of ts_rank; 0 where it does not.
_RANKED = """
WITH candidate AS MATERIALIZED (
    SELECT c.archive_id, c.id, {filters} AS wanted, {k1} * ({rest} + {b} * c.word_count / $5::float8) AS length,
        {frequencies}
    FROM ({sources}) AS c WHERE c.organization_id = $1 AND {within}
), weight AS MATERIALIZED (
    SELECT {weights} FROM candidate
)
SELECT archive_id, id, {score} AS score, {whole} AS whole
FROM candidate CROSS JOIN weight
WHERE wanted
ORDER BY score DESC, id
LIMIT $8
"""
_FREQUENCY = "width_bucket(ts_rank('{{1,1,1,1}}', c.words, ($7::text[])[{n}]::tsquery)::float8, $3::float8[]) AS f{n}"
_WEIGHT = """coalesce(($6::float8[])[{n}], ln(1 + (greatest($4::float8 - count(*) FILTER (WHERE f{n} > 0), 0) + 0.5)
        / (count(*) FILTER (WHERE f{n} > 0) + 0.5))) AS w{n}"""
_SCORE = "w{n} * f{n} * {k} / (f{n} + length)"
# A passage of usual length that has each word once: the rest of the score is 1.
_WHOLE = "w{n}"


def matching(query: str, most: int | None, values: Values) -> str:
    """Returns the passages of a tsquery, which has to say of which archives; at most `most`."""
    return _MATCHING.format(columns=COLUMNS, query=values.add(query), most=values.add(most))


def matching_of_newest(query: str, most: int, part: Part, values: Values) -> str:
    """Returns those of the newest passages of a part that match."""
    return _OF_NEWEST.format(columns=COLUMNS, newest=newest(part, values.add(most)), query=values.add(query))


def matching_of_selection(query: str, chosen: str, values: Values) -> str:
    """Returns those that match of the passages whose keys a statement gives."""
    return _OF_CHOSEN.format(columns=COLUMNS, chosen=chosen, query=values.add(query))


def rank_statement(sources: list[str], words: int, part: Part, filters: PassageFilter, values: Values) -> str:
    """Returns the best by BM25 among the candidates of all sources, of which none may give what another does."""
    numbers = range(1, words + 1)
    return _RANKED.format(
        filters=own_condition(filters, values),
        within=within(part),
        sources="\n    UNION ALL ".join(sources),
        k1=BM25_K1,
        b=BM25_B,
        rest=1 - BM25_B,
        frequencies=", ".join(_FREQUENCY.format(n=n) for n in numbers),
        weights=", ".join(_WEIGHT.format(n=n) for n in numbers),
        score=" + ".join(_SCORE.format(n=n, k=BM25_K1 + 1) for n in numbers),
        whole=" + ".join(_WHOLE.format(n=n) for n in numbers),
    )
