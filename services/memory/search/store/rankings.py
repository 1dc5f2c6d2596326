"""`Rankings` on Postgres."""

import asyncpg

from services.memory.search.store.by_vector import VectorRanking
from services.memory.search.store.by_words import WordRanking


class PostgresRankings(WordRanking, VectorRanking):
    """Both halves on one pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        WordRanking.__init__(self, pool)
        VectorRanking.__init__(self, pool)
