"""Archival memory: passages are stored and found again."""

from services.memory.core.ports.archives import ArchiveStore
from services.memory.core.ports.embedder import Embedder
from services.memory.core.ports.embedding_changes import OtherSides
from services.memory.core.ports.passages import PassageStore
from services.memory.core.ports.search import Rankings
from services.memory.passages.insertion import Insertion
from services.memory.search.service import Retrieval


class Archival(Insertion, Retrieval):
    """Both halves. `search_seconds`: how long a search waits for the embedding of its query."""

    def __init__(
        self,
        store: PassageStore,
        archives: ArchiveStore,
        rankings: Rankings,
        embedder: Embedder,
        sides: OtherSides,
        *,
        search_seconds: float,
    ) -> None:
        Insertion.__init__(self, store, archives, embedder)
        Retrieval.__init__(self, store, rankings, embedder, sides, search_seconds=search_seconds)
