"""`Rankings` on Postgres."""

import asyncpg

from services.memory.search.store.by_vector import VectorRanking
from services.memory.search.store.by_words import WordRanking
from services.memory.search.store.neighbours import NeighbourLists


class PostgresRankings(WordRanking, VectorRanking, NeighbourLists):
    """Both halves, and neighbours, on one pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        WordRanking.__init__(self, pool)
        VectorRanking.__init__(self, pool)
        NeighbourLists.__init__(self, pool)
