"""Archival memory: passages are stored and found again."""

from services.memory.archival.embedding_ports import OtherSides
from services.memory.archival.insertion import Insertion
from services.memory.archival.ports import ArchiveStore, PassageStore
from services.memory.archival.retrieval import Retrieval
from services.memory.ports import Embedder, Rankings


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
