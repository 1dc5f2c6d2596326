"""What hybrid searches weigh."""

from services.common.core.neighbours import DEFAULT_SHARE
from services.common.search_settings import SearchSettings
from services.common.settings import Env


def test_without_settings_a_hash_weighs_nothing_and_neighbours_count() -> None:
    settings = SearchSettings.read(Env({}))
    assert (settings.weight("loci/hash"), settings.weight("a/b"), settings.neighbour_share) == (0, 1, DEFAULT_SHARE)


def test_a_weight_for_one_model_leaves_the_others_as_they_are() -> None:
    settings = SearchSettings.read(Env({"LOCI_VECTOR_WEIGHTS": "a/b=0.5", "LOCI_NEIGHBOUR_SHARE": "0"}))
    assert (settings.weight("loci/hash"), settings.weight("a/b"), settings.neighbour_share) == (0, 0.5, 0)
    assert SearchSettings.read(Env({"LOCI_VECTOR_WEIGHTS": "loci/hash=1"})).weight("loci/hash") == 1
