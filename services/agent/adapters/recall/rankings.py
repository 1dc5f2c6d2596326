"""`core.ports_recall.Rankings` on Postgres."""

import asyncpg

from services.agent.adapters.recall.hits import MessageHits
from services.agent.adapters.recall.nearest import VectorRanking
from services.agent.adapters.recall.neighbours import NeighbourLists
from services.agent.adapters.recall.scopes import Scopes
from services.agent.adapters.recall.words import WordRanking


class PostgresRankings(Scopes, WordRanking, VectorRanking, MessageHits, NeighbourLists):
    """All parts on one pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        WordRanking.__init__(self, pool)
        VectorRanking.__init__(self, pool)
