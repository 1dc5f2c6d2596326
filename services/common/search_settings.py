"""What hybrid searches weigh, in archives and in messages alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from services.common.core.neighbours import DEFAULT_SHARE
from services.common.default_embedding import local_name
from services.common.settings import Env

# The embedded model's features are words and pieces of them, which searches by words know better.
_MEANS_NOTHING: Mapping[str, float] = MappingProxyType({"loci/hash": 0.0})


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """vector_weights: by handle, what similarities weigh beside words, which weigh 1 as models that are not named do.

    neighbour_share: the part of a score that goes to what stands next to a hit; 0: neighbours do not count.
    reranker: the handle of a model that orders the best anew; empty: none.
    """

    vector_weights: Mapping[str, float] = field(default_factory=dict)
    neighbour_share: float = DEFAULT_SHARE
    reranker: str = ""

    @classmethod
    def read(cls, env: Env) -> "SearchSettings":
        """Raises SettingsError."""
        weights = env.numbers("LOCI_VECTOR_WEIGHTS", example="openai/text-embedding-3-small=0.8")
        share = env.fraction("LOCI_NEIGHBOUR_SHARE", default=DEFAULT_SHARE)
        return cls({**_MEANS_NOTHING, **weights}, share, _reranker(env))

    def weight(self, handle: str) -> float:
        """Returns what similarities by a model weigh."""
        return self.vector_weights.get(handle, 1.0)


def _reranker(env: Env) -> str:
    place = env.text("LOCI_LOCAL_RERANKER", default="")
    return env.text("LOCI_RERANKER", default=f"local/{local_name(place)}" if place else "")


STANDARD = SearchSettings()
