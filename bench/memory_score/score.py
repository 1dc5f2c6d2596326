"""Runs a history through the baseline and the product; who has what figure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.memory_score.baseline import Baseline
from bench.memory_score.concepts import ConceptEmbedding
from bench.memory_score.history import History, Size, make
from bench.memory_score.local import local_embedding
from bench.memory_score.metrics import figures
from bench.memory_score.product import MODES, Embedding, Product, memory_with
from bench.memory_score.talk import TalkSize, make_talk
from services.common.search_settings import SearchSettings
from services.common.settings import Env
from services.llm_gateway.vendors.demo import hashing

BASELINE = "BM25 library"
_SETTINGS = SearchSettings.read(Env({}))


async def score(url: str, folder: Path, seed: int, size: Size) -> dict[str, dict[str, float]]:
    """Returns the score of the history of a seed, see `score_history`."""
    return await score_history(url, folder, make(seed, size))


async def score_talk(url: str, folder: Path, seed: int, size: TalkSize) -> dict[str, dict[str, float]]:
    """Returns the score of the talk of a seed, see `score_history`."""
    return await score_history(url, folder, make_talk(seed, size))


async def score_history(
    url: str, folder: Path, history: History, depths: Sequence[int] = (10,), local: Path | None = None
) -> dict[str, dict[str, float]]:
    """Column -> figure -> value, 0 to 1; `url` is a migrated database of memory's. depths: of recall by kind.

    The columns `halves` are hybrid searches in which neighbours do not count. local: the folder of a further model.
    """
    baseline = Baseline(history)
    columns = {BASELINE: figures([baseline.answer(question) for question in history.questions], depths)}
    for place, (name, embedding) in enumerate(_models(history, local).items()):
        async with (
            memory_with(url, folder, embedding, _SETTINGS) as memory,
            memory_with(url, folder, embedding, replace(_SETTINGS, neighbour_share=0.0)) as without_neighbours,
        ):
            product = Product(memory, history)
            await product.load(name if "/" in name else f"bench/{name}")
            for mode in MODES:
                if mode != "text" or place == 0:  # the words are the same under every model
                    title = mode if mode == "text" else f"{mode}, {name}"
                    columns[title] = figures(await product.answers(mode), depths)
            answers = await product.answers("hybrid", without_neighbours)
            columns[f"halves, {name}"] = figures(answers, depths)
    return columns


def _models(history: History, local: Path | None) -> dict[str, Embedding]:
    """Returns the embeddings that know something of a history: what people said has none that knows its meanings."""
    made: dict[str, Embedding] = {} if history.words is None else {"concepts": ConceptEmbedding(history.words).embed}
    if local is not None:
        made[f"local/{local.name}"] = local_embedding(local)
    return made | {"loci/hash": hashing.embed}
